/**
 * Finds the address of the client. That is the address of the connection, unless it belongs to a trusted proxy: then
 * it is the one that the proxy names in `X-Forwarded-For` or `Forwarded` (RFC 7239).
 *
 * Each proxy appends the address from which it got the request. So the entries are read from the right, and the first
 * address that is not a trusted proxy is the client. What a client sends itself is further to the left.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net';

/** Maximum number of proxies of a request. Entries further to the left are ignored. */
const maxProxies = 20;

export class TrustedProxies {
  readonly #trusted = new BlockList();

  /** IP addresses, and networks such as `10.0.0.0/8`. */
  constructor(proxies: readonly string[]) {
    for (const proxy of proxies) {
      const [address = '', prefix] = proxy.split('/');
      const bits = prefix === undefined ? undefined : Number(prefix);
      this.#trusted.addSubnet(address, bits ?? (isIPv6(address) ? 128 : 32), familyOf(address));
    }
  }

  /** The client of a request, for limits. */
  clientOf({ socket, headers }: IncomingMessage): string {
    const { remoteAddress = '' } = socket; // it is missing once the client has disconnected
    const { forwarded, 'x-forwarded-for': forwardedFor } = headers;
    const named = [
      this.#follow(remoteAddress, String(forwardedFor ?? ''), addressOf),
      this.#follow(remoteAddress, forwarded ?? '', (element) => addressOf(forOf(element))),
    ].filter((address) => address !== remoteAddress);
    // A proxy passes on the header that it does not write itself. If the two disagree, the client has sent one.
    const [client = remoteAddress, ...others] = new Set(named);
    return clientAt(others.length === 0 ? client : remoteAddress);
  }

  /** Ends at an entry that is not an address: garbage, or a proxy that hides its client. */
  #follow(peer: string, list: string, parse: (entry: string) => string | undefined): string {
    let [address, end] = [peer, list.length];
    for (let at = 0; at < maxProxies && end !== -1 && this.#isTrusted(address); at++) {
      const comma = list.lastIndexOf(',', end - 1);
      const next = parse(list.slice(comma + 1, end).trim());
      if (next === undefined) break;
      [address, end] = [next, comma];
    }
    return address;
  }

  #isTrusted(address: string): boolean {
    return address !== '' && this.#trusted.check(address, familyOf(address));
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/**
 * The address in `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`, always written in the same way:
 * proxies write zeros, letters and IPv4 addresses in IPv6 differently.
 */
function addressOf(text = ''): string | undefined {
  const [, ipv6, ipv4] = /^(?:\[(.*)\]|([\d.]+))(?::[\w.-]+)?$/.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? text;
  if (isIP(address) === 0) return undefined;
  const { address: written } = new SocketAddress({ address, family: familyOf(address) });
  return written.replace(/^::ffff:(?=\d+\.)/, '');
}

/** Maximum number of pairs in an element. RFC 7239 has four. */
const maxPairs = 16;
/** One `name=value` of RFC 7239. The value is a token or a quoted string. */
const pairPattern = /^\s*([!#$%&'*+.^`|~\w-]+)=(?:([!#$%&'*+.^`|~\w-]+)|"((?:[^"\\]|\\.)*)")\s*$/;

/**
 * The value of `for` in an element of `Forwarded`. Undefined if any part of the element is malformed: it can be the
 * rest of a quoted string that contains a comma.
 */
function forOf(element: string): string | undefined {
  const pairs = element.split(';', maxPairs + 1).map((pair) => pairPattern.exec(pair));
  if (pairs.includes(null) || pairs.length > maxPairs) return undefined;
  const values = pairs.flatMap((pair) => (pair?.[1]?.toLowerCase() === 'for' ? [pair] : []));
  const [, , token, quoted] = values.length === 1 ? (values[0] ?? []) : [];
  return token ?? quoted?.replaceAll(/\\(.)/g, '$1');
}

/**
 * The client of an address. IPv6 addresses with the same first 64 bits are one client, because a host can
 * have a complete /64 network. Each IPv4 address is a client, also as ::ffff:192.0.2.1.
 */
function clientAt(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [before = [], after = []] = address.split('::').map((part) => part.split(':'));
  const left = 8 - before.length - after.length; // above 0 only if there is a `::`
  const zeros = Array.from({ length: Math.max(0, left) }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
