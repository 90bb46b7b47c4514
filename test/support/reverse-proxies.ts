/**
 * The reverse proxies of docs/how-to/deploy.md, with TLS: nginx, Caddy and HAProxy run with the files of deploy/. Only
 * addresses and paths are replaced.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { Agent, request as httpsRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Page } from '../../tools/markdown.ts';
import { balancerConfiguration } from './balancer.ts';
import { makeCertificate } from './certificate.ts';
import { freePort } from './postgres.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';
import { without, type Program } from './programs.ts';

/** A running proxy. */
export interface ReverseProxy {
  httpsPort: number;
  /** The port without TLS. HAProxy has none. */
  httpPort: number;
  /** The certificate of the proxy, which clients must trust. */
  ca: Buffer;
  folder: string;
}

interface Setup {
  /** Whether the public address has the path prefix of docs/how-to/deploy.md, /api. */
  isBelowPath: boolean;
  folder: string;
  httpPort: number;
  httpsPort: number;
  /** Port of the service. */
  upstream: number;
  certificate: string;
  key: string;
}

interface Kind {
  program: Program;
  /** Writes the configuration into `folder`. Returns the arguments of the program. */
  configure: (setup: Setup) => readonly string[];
}

const kinds = {
  nginx: {
    program: 'nginx',
    configure: ({ isBelowPath, folder, httpPort, httpsPort, upstream, certificate, key }) => {
      const location = /location \/ \{\n +proxy_pass .*\n/;
      const site = readFileSync(fileIn('nginx.conf'), 'utf8')
        .replace(location, (lines) => (isBelowPath ? documented('nginx') : lines))
        .replaceAll(/^ *listen \[::\].*\n/gm, '')
        .replace('listen 80;', `listen 127.0.0.1:${httpPort};`)
        .replace('listen 443', `listen 127.0.0.1:${httpsPort}`)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`)
        .replace(/ssl_certificate .*/, `ssl_certificate ${certificate};`)
        .replace(/ssl_certificate_key .*/, `ssl_certificate_key ${key};`)
        .replace('/var/log/nginx', folder);
      writeFileSync(join(folder, 'site.conf'), site);
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (kind) => `${kind}_temp_path ${join(folder, kind)};`,
      );
      const main = `daemon off; pid ${join(folder, 'pid')}; error_log ${join(folder, 'error.log')}; events {}
        http { ${paths.join(' ')} include ${join(folder, 'site.conf')}; }`;
      writeFileSync(join(folder, 'nginx.conf'), main);
      return ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')];
    },
  },
  Caddy: {
    program: 'caddy',
    configure: ({ isBelowPath, folder, httpPort, httpsPort, upstream, certificate, key }) => {
      const options = `admin off\n\thttp_port ${httpPort}\n\thttps_port ${httpsPort}`;
      const proxy = /reverse_proxy .*\n([^]*?\n)\t\}\n/;
      const site = readFileSync(fileIn('Caddyfile'), 'utf8')
        .replace(proxy, (lines, rest: string) =>
          isBelowPath ? `${documented('caddy')}${rest}}\n}\n` : lines,
        )
        .replace(/^\{$/m, `{\n\t${options}`)
        .replace(/^plants\.example \{$/m, `$&\n\ttls ${certificate} ${key}`)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`);
      writeFileSync(join(folder, 'Caddyfile'), site);
      return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
    },
  },
  HAProxy: {
    program: 'haproxy',
    configure: ({ isBelowPath, folder, httpsPort, upstream, certificate, key }) => {
      const both = join(folder, 'both.pem');
      writeFileSync(both, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'));
      const [bind = '', ...rules] = documented('haproxy').split('\n');
      const listen = bind.replace(/:\d+/, `127.0.0.1:${httpsPort}`).replace(/\S+\.pem/, both);
      const replicas = [`http://127.0.0.1:${upstream}`];
      const configuration = balancerConfiguration(listen, replicas);
      const file = join(folder, 'haproxy.cfg');
      writeFileSync(
        file,
        isBelowPath
          ? configuration.replace(/default_backend .*/, `$&\n  ${rules.join('\n  ')}`)
          : configuration,
      );
      return ['-db', '-f', file];
    },
  },
} satisfies Record<string, Kind>;

export type ReverseProxyName = keyof typeof kinds;
export const reverseProxyNames = Object.keys(kinds) as ReverseProxyName[]; // the keys above

/** The reason to skip the tests of a proxy, or false. */
export function missing(name: ReverseProxyName): string | false {
  return without(kinds[name].program, 'openssl');
}

/** Starts a proxy in front of a local port, with a certificate of its own for plants.example. */
export async function startReverseProxy(
  t: Pick<TestContext, 'after'>,
  name: ReverseProxyName,
  upstream: number,
  isBelowPath = false,
): Promise<ReverseProxy> {
  const { program, configure } = kinds[name];
  let stop = async () => {};
  t.after(() => stop()); // before the folder is deleted
  const folder = tempFolder(t);
  const [httpPort, httpsPort] = [await freePort(), await freePort()];
  const { cert: certificate, key } = makeCertificate(folder, 'plants');
  const args = configure({ isBelowPath, folder, httpPort, httpsPort, upstream, certificate, key });
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', name === 'Caddy' ? 'ignore' : 'inherit'], // Caddy logs there
    env: { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  const ended = once(child, 'exit');
  stop = async () => {
    child.kill('SIGTERM'); // nginx would leave its workers behind after SIGKILL
    await ended;
  };
  const ca = readFileSync(certificate);
  await until(`${name} accepts connections`, () => {
    if (child.exitCode !== null) throw new Error(`${name} exited with ${child.exitCode}`);
    return acceptsTls(httpsPort, ca);
  });
  return { httpsPort, httpPort, ca, folder };
}

function acceptsTls(port: number, ca: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTls({ port, host: '127.0.0.1', servername: 'plants.example', ca });
    socket.once('secureConnect', () => socket.end(() => resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

/** The lines for a proxy in docs/how-to/deploy.md. */
function documented(language: string): string {
  return new Page(new URL('../../docs/how-to/deploy.md', import.meta.url)).blocks
    .filter((block) => block.language === language)
    .map(({ text }) => text)
    .join('');
}

function fileIn(name: string): URL {
  return new URL(`../../deploy/${name}`, import.meta.url);
}

export interface ProxyResponse {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Sends requests through the proxy on one connection. */
export function clientOf(
  t: TestContext,
  proxy: ReverseProxy,
  token: string,
  localAddress?: string,
) {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ...(localAddress && { localAddress }),
  });
  t.after(() => agent.destroy());
  const open = async (
    method: string,
    path: string,
    { body = '', headers = {} }: { body?: string; headers?: Record<string, string> } = {},
  ): Promise<IncomingMessage> => {
    const sent = httpsRequest({
      ...addressOf(proxy),
      agent,
      method,
      path,
      headers: {
        host: 'plants.example',
        authorization: `Bearer ${token}`,
        ...(body !== '' && { 'content-type': 'application/json' }),
        ...(body !== '' && !('transfer-encoding' in headers) && { 'content-length': body.length }),
        ...headers,
      },
    });
    sent.on('error', () => {}); // a body that is refused before it is sent
    if ('expect' in headers) sent.once('continue', () => sent.end(body)).flushHeaders();
    else sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response;
  };
  const send = async (...args: Parameters<typeof open>): Promise<ProxyResponse> => {
    const response = await open(...args);
    const chunks: string[] = [];
    for await (const chunk of response.setEncoding('utf8')) chunks.push(String(chunk));
    return { status: response.statusCode, headers: response.headers, body: chunks.join('') };
  };
  return { open, send };
}

function addressOf({ httpsPort, ca }: ReverseProxy) {
  return { host: '127.0.0.1', port: httpsPort, servername: 'plants.example', ca };
}

export async function getOverHttp2(
  t: TestContext,
  proxy: ReverseProxy,
  token: string,
): Promise<[number, string]> {
  const session = connectHttp2('https://plants.example', {
    createConnection: () => connectTls({ ...addressOf(proxy), ALPNProtocols: ['h2'] }),
  });
  t.after(() => session.destroy());
  const stream = session.request({ ':path': '/plants', authorization: `Bearer ${token}` });
  const [headers] = await once(stream, 'response');
  const chunks: string[] = [];
  for await (const chunk of stream.setEncoding('utf8')) chunks.push(String(chunk));
  return [Number(headers[constants.HTTP2_HEADER_STATUS]), chunks.join('')];
}
