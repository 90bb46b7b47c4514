/**
 * The options of `serve`. Each can also be set by a variable.
 */
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { InvalidArgumentError, type Command } from '@commander-js/extra-typings';
import { idleTimeoutMs } from '../../http/limits.ts';
import { isProtected, tokenTypes } from '../../oidc/options.ts';
import { UsageError } from '../../refusal.ts';
import { maxRequests, parseRate, type Rate } from '../../shared/token-buckets.ts';
import {
  databaseFlag,
  flag,
  integer,
  keepChangesFlag,
  parseBaseUrl,
  parseDurationMs,
  parseId,
  parseName,
} from '../options.ts';

/** The options of `serve`, as commander parses them. */
export type ServeOptions = ReturnType<ReturnType<typeof addServeOptions>['opts']>;

const countWorkers = integer(1, 256, 'auto or an integer');
const levels = ['debug', 'info', 'warn', 'error'] as const;
const parseOrigins = listOf(parseOrigin);

export function addServeOptions(serve: Command) {
  serve.helpOption('-h, --help', 'display help for command');
  serve.createOption = flag; // so each other option also has a variable
  return serve
    .addOption(databaseFlag())
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 chooses a free one', integer(0, 65_535), 8080)
    .option(
      '--base-url <url>',
      'public URL of the service, for example behind a proxy; can include a path prefix',
      parseBaseUrl,
    )
    .option(
      '--cors-origin <list>',
      'origins whose web pages can use the service, separated by commas; * for all',
      (text) => (text === '*' ? [text] : parseOrigins(text)),
    )
    .option('--tls-cert <file>', 'certificate for HTTPS, in PEM format, with its chain')
    .option('--tls-key <file>', 'private key of the certificate, in PEM format')
    .option(
      '--max-plants-per-user <number>',
      'maximum number of plants that a user can own',
      parseId,
    )
    .option('--max-plants-per-store <number>', 'maximum number of plants in a store', parseId)
    .addOption(
      keepChangesFlag(
        'how long the log keeps changes, to restore plants and show who changed them; 0 for no log',
      ),
    )
    .option(
      '--workers <number>',
      'number of processes that serve requests; auto starts one for each core',
      (text) => (text === 'auto' ? availableParallelism() : countWorkers(text)),
      1,
    )
    .option(
      '--oidc-issuer <url>',
      'issuer URL of the identity provider whose access tokens are accepted',
      parseIssuer,
    )
    .option('--oidc-audience <text>', 'audience (aud) of the access tokens: the name of this API')
    .addOption(
      flag(
        '--oidc-token-type <type>',
        'type (typ) of the access tokens; jwt also accepts at+jwt and no type',
      )
        .choices(tokenTypes)
        .default(tokenTypes[0]),
    )
    .option('--oidc-user-claim <claim>', 'claim with the name of the user', 'sub')
    .option('--oidc-store <name>', 'store of the users; created if needed', parseName, 'main')
    .addOption(
      flag(
        '--oidc-store-claim <claim>',
        'claim with the name of the store, if users belong to different stores',
      ).conflicts('oidcStore'),
    )
    .option('--oidc-role-claim <claim>', 'claim with the roles of the user')
    .option(
      '--oidc-manager-value <text>',
      'value of the role claim that makes a user a manager; other users are members',
    )
    .option('--oidc-scope-prefix <text>', 'prefix of the scopes in the access tokens')
    .option('--oidc-client-id <text>', 'client id of the page; lets people sign in at the provider')
    .option(
      '--oidc-client-scope <list>',
      'scopes that the page requests, separated by spaces; by default openid and all that it uses',
      parseClientScope,
    )
    .addOption(
      flag(
        '--rate-limit <rate>',
        'maximum rate of requests with one token, such as 200/s or 600/m; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default('off' as const, 'off'),
    )
    .option(
      '--rate-limit-redis <url>',
      'Redis server that counts requests for all processes: redis://... or rediss://...',
      parseRedisUrl,
    )
    .addOption(
      flag(
        '--auth-failure-limit <rate>',
        'maximum rate of failed authentications from one address, or off; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default({ requests: 600, windowSeconds: 60 } as const, '600/m'),
    )
    .option(
      '--max-requests-in-progress <number>',
      'maximum number of requests in progress with one token; counted by each process',
      integer(1, maxRequests),
      512,
    )
    .addOption(
      flag('--keep-alive <duration>', 'how long an idle connection stays open, at most 1d')
        .argParser(parseKeepAlive)
        .default(idleTimeoutMs, '72s'),
    )
    .option(
      '--trust-proxy <list>',
      'addresses and networks of proxies that pass on the address of the client, separated by commas',
      listOf(parseProxy),
    )
    .option(
      '--webhook-networks <list>',
      'where webhooks can send, separated by commas: public, or networks such as 10.0.0.0/8; none by default',
      listOf(parseWebhookNetwork),
    )
    .option(
      '--metrics-port <number>',
      'port that serves metrics for Prometheus at /metrics; 0 chooses a free one; off by default',
      integer(0, 65_535),
    )
    .option('--metrics-host <host>', 'address of the port for metrics', '127.0.0.1')
    .option('--backup-every <duration>', 'how often to back up an SQLite file', parseDurationMs)
    .option('--backup-dir <folder>', 'folder of these backups, which is created in an existing one')
    .option('--backup-keep <number>', 'number of backups to keep', integer(1, 100_000), 28)
    .option('--backup-heartbeat <url>', 'URL to get after each verified backup', parseHeartbeat)
    .addOption(
      flag('--log-level <level>', 'lowest level to log')
        .choices([...levels, 'silent'])
        .default('info'),
    )
    .addOption(
      flag('--log-requests <level>', 'level at which each request is logged')
        .choices(levels)
        .default('debug' as const),
    );
}

function listOf(parse: (text: string) => string): (list: string) => string[] {
  return (list) => list.split(',').map((one) => parse(one.trim()));
}

/** An origin as browsers send it: for http and https in lower case, and without the default port. */
function parseOrigin(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^(?!file:|ftp:|wss?:)[a-z][a-z\d+.-]*:\/\/[^/\\?#@\s*]+\/?$/i.test(text)) {
    throw new InvalidArgumentError(
      'Use origins such as https://garden.example or capacitor://localhost, without a path, separated by commas; ' +
        'or * alone for all.',
    );
  }
  // For URL, only web pages have an origin: no apps, and no extensions of browsers.
  return url.origin === 'null' ? `${url.protocol}//${url.host}`.toLowerCase() : url.origin;
}

function parseKeepAlive(text: string): number {
  const durationMs = parseDurationMs(text);
  if (durationMs <= 86_400_000) return durationMs; // Node's timers have a maximum
  throw new InvalidArgumentError('Use at most 1d.');
}

function parseRateOrOff(text: string): Rate | 'off' {
  const rate = text === 'off' ? text : parseRate(text);
  if (rate !== undefined) return rate;
  throw new InvalidArgumentError(
    `Use a number from 1 to ${maxRequests} followed by /s, /m or /h, such as 200/s; or off.`,
  );
}

function parseRedisUrl(text: string): string {
  if (/^rediss?:\/\/[^/]/i.test(text) && URL.canParse(text)) return text;
  // InvalidArgumentError would show the text, which can contain a password.
  throw new UsageError(
    'The address of Redis is not valid. Use redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS.',
  );
}

function parseHeartbeat(text: string): string {
  if (/^https?:\/\/[^/]/i.test(text) && URL.canParse(text)) return text;
  // InvalidArgumentError would show the text, which can be secret.
  throw new UsageError('The URL of --backup-heartbeat is not valid. Use an http or https URL.');
}

/** An IP address or a network, such as 10.0.0.0/8. */
function parseProxy(text: string): string {
  if (isNetwork(text)) return text;
  throw new InvalidArgumentError(
    'Use IP addresses and networks, such as 127.0.0.1 or 10.0.0.0/8, separated by commas.',
  );
}

function parseWebhookNetwork(text: string): string {
  if (text === 'public' || isNetwork(text)) return text;
  throw new InvalidArgumentError(
    'Use public, or IP addresses and networks, such as 10.0.0.0/8, separated by commas.',
  );
}

function isNetwork(text: string): boolean {
  const [address = '', prefix = '0', ...rest] = text.split('/');
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits;
}

/** The text as it is, because tokens have exactly this text in `iss`. */
function parseIssuer(text: string): string {
  if (!isProtected(text) || /[?#@\s]/.test(text)) {
    throw new InvalidArgumentError(
      'Use an https URL without a query, a fragment or a user name, such as https://login.example/realms/plants. ' +
        'An http URL must lead to this machine.',
    );
  }
  return text;
}

function parseClientScope(text: string): string {
  if (text.split(' ').includes('openid')) return text;
  throw new InvalidArgumentError('Add openid: without it, nobody can sign in.');
}
