/**
 * Sends messages to addresses that users have chosen, only into networks that the operator allows. The address is checked
 * when a socket connects, whether the URL has it or a name leads to it.
 */
import { Resolver } from 'node:dns/promises';
import { Agent, request as requestHttp } from 'node:http';
import { Agent as TlsAgent, request as requestHttps } from 'node:https';
import { BlockList, connect, isIP, isIPv6 } from 'node:net';
import type { IPVersion, LookupFunction, TcpNetConnectOpts } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { callbackify } from 'node:util';
import { attemptTimeoutMs, headersOf, type Post } from './webhook.ts';

/** What is not public, of IPv4 and of `2000::/3`: all other addresses of IPv6 are not public either. */
const notPublic = (
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
  '192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 ' +
  '198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 ' +
  '2620:4f:8000::/48 3fff::/20'
).split(' ');

/** Blocks every address but those in the given networks, such as `10.0.0.0/8` and `public`. */
export function blockListOf(networks: readonly string[]): BlockList {
  const isPublic = networks.includes('public');
  const [special, unicast] = [listOf(notPublic), listOf(['2000::/3'])];
  const allowed = listOf(networks.filter((network) => network !== 'public'));
  const check = (address: string, family?: IPVersion) =>
    !allowed.check(address, family) &&
    (!isPublic ||
      special.check(address, family) ||
      (family === 'ipv6' && !unicast.check(address, family)));
  return Object.assign(new BlockList(), { check });
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = isIPv6(network) ? 128 : 32] = network.split('/');
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Maximum number of responses with a status like 103, before the one that counts. */
const maxInterim = 16;

export function openPost(networks: readonly string[], lookup = lookupIn()): Post {
  // Without keepAlive, each message has a connection of its own, whose address is checked.
  const settings = { blockList: blockListOf(networks), lookup };
  const [http, https] = [new Agent(settings), new TlsAgent(settings)];
  https.createConnection = (to) => {
    const target = to as TcpNetConnectOpts; // the agent has set the host and the port
    return connectTls({ ...target, socket: connect(target) }); // by itself, TLS ignores the list
  };
  return ({ url, secret }, message, signal = AbortSignal.timeout(attemptTimeoutMs)) =>
    new Promise((resolve) => {
      const endMs = Date.now() + attemptTimeoutMs;
      const headers = headersOf(message, secret);
      const options = { method: 'POST', headers, signal };
      const isTls = /^https:/i.test(url);
      const request = isTls
        ? requestHttps(url, { ...options, agent: https })
        : requestHttp(url, { ...options, agent: http });
      request.on('response', (response) => {
        const retryAfterMs = retryAfterMsOf(response.headers['retry-after']);
        resolve({ status: response.statusCode, retryAfterMs });
        response.destroy(); // nothing of the body is read
      });
      let interim = 0; // to read them until the timeout would take the time of others
      request.on('information', () => ++interim > maxInterim && request.destroy());
      request.on('error', (error) => resolve({ error: reasonOf(error) }));
      request.on('close', () => resolve({ error: 'The receiver sent no response.' }));
      // A process that was paused meanwhile has lost its lease, and Node connects before it looks at timers.
      const begin = () => (Date.now() < endMs ? request.end(message.body) : request.destroy());
      request.on('socket', (socket) => socket.once(isTls ? 'secureConnect' : 'connect', begin));
    });
}

/** How long one kind of address waits for the other (RFC 8305 has less, for people who wait). */
const resolutionDelayMs = 300;

/** Asks only DNS. With the lookups of the system, a few names whose servers do not respond would delay all others. */
export function lookupIn(resolver = new Resolver({ timeout: 2_000, tries: 2 })): LookupFunction {
  const find = callbackify(async (host: string) => {
    const found: string[] = [];
    const queries = [resolver.resolve4(host), resolver.resolve6(host)].map(
      async (query) => void found.push(...(await query)),
    );
    const all = Promise.allSettled(queries);
    const first = Promise.any(queries).then(() => pause(resolutionDelayMs));
    await Promise.race([all, first.catch(() => all)]);
    if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
    throw Object.assign(new Error(`no address of ${host}`), { code: 'ENOTFOUND' });
  });
  return (host, _options, callback) => find(host, callback);
}

/** The header is a number of seconds, or a time (RFC 9110, section 10.2.3). */
function retryAfterMsOf(text = ''): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Math.max(0, ms) || 0; // NaN if it is neither
}

function reasonOf({ code, name }: NodeJS.ErrnoException): string {
  if (name === 'AbortError') return `There was no response in ${attemptTimeoutMs / 1_000} s.`;
  if (code === 'ERR_IP_BLOCKED') return 'The operator does not allow this address.';
  return `The connection failed (${code}).`;
}
