import type { Command } from '@commander-js/extra-typings';
import { oidcFlags } from './oidc.ts';
import {
  databaseFlag,
  examples,
  flag,
  parseBaseUrl,
  parseHost,
  parseOrigins,
  parsePort,
  parseProxies,
  parseRateOrOff,
  parseRedisUrl,
  parseRequestsInProgress,
  parseQuota,
  parseWorkers,
} from '../options.ts';

export function addServeCommand(plantStore: Command): void {
  plantStore
    .command('serve')
    .description('start the HTTP service')
    .addOption(databaseFlag())
    .addOption(
      flag('--host <host>', 'address to listen on').argParser(parseHost).default('127.0.0.1'),
    )
    .addOption(
      flag('--port <number>', 'port to listen on; 0 chooses a free one')
        .argParser(parsePort)
        .default(8080),
    )
    .addOption(
      flag('--base-url <url>', 'public URL, if it differs; can include a path prefix')
        .argParser(parseBaseUrl)
        .default('', 'none'),
    )
    .addOption(
      flag(
        '--cors-origin <list>',
        'origins whose web pages can use the service, separated by commas; * for all',
      )
        .argParser(parseOrigins)
        .default([], 'none'),
    )
    .addOption(flag('--tls-cert <file>', 'certificate in PEM format, with its chain; for HTTPS'))
    .addOption(flag('--tls-key <file>', 'private key of the certificate, in PEM format'))
    .addOption(
      flag(
        '--max-plants-per-user <number>',
        'maximum number of plants that a user can own',
      ).argParser(parseQuota),
    )
    .addOption(
      flag('--max-plants-per-store <number>', 'maximum number of plants in a store').argParser(
        parseQuota,
      ),
    )
    .addOption(
      flag(
        '--workers <number>',
        'number of processes that serve requests; auto starts one per core',
      )
        .argParser(parseWorkers)
        .default(1),
    )
    .addOption(oidcFlags.issuer)
    .addOption(oidcFlags.audience)
    .addOption(oidcFlags.tokenType)
    .addOption(oidcFlags.userClaim)
    .addOption(oidcFlags.store)
    .addOption(oidcFlags.storeClaim)
    .addOption(oidcFlags.roleClaim)
    .addOption(oidcFlags.managerValue)
    .addOption(oidcFlags.scopePrefix)
    .addOption(oidcFlags.clientId)
    .addOption(oidcFlags.clientScope)
    .addOption(
      flag(
        '--rate-limit <rate>',
        'rate of requests with one token, such as 200/s or 600/m; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default('off' as const, 'off'),
    )
    .addOption(
      flag(
        '--rate-limit-redis <url>',
        'Redis that counts for all processes: redis://... or rediss://...',
      ).argParser(parseRedisUrl),
    )
    .addOption(
      flag(
        '--auth-failure-limit <rate>',
        'rate of failed authentications from one address; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default({ requests: 600, windowSeconds: 60 } as const, '600/m'),
    )
    .addOption(
      flag(
        '--max-requests-in-progress <number>',
        'requests with one token that are in progress; counted by each process',
      )
        .argParser(parseRequestsInProgress)
        .default(512),
    )
    .addOption(
      flag(
        '--trust-proxy <list>',
        'proxies that name their client, as addresses and networks separated by commas',
      )
        .argParser(parseProxies)
        .default([], 'none'),
    )
    .addOption(
      flag('--log-level <level>', 'lowest level to log; debug logs every request')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .addHelpText(
      'after',
      examples([
        'plant-store serve',
        'plant-store serve --port 8081 --database sqlite:/var/lib/plants.db',
        'plant-store serve --workers auto --base-url https://plants.example/api',
      ]),
    )
    .allowExcessArguments() // here, so that the message can name the flag
    .action(async (options, command) => {
      const [excess] = command.args;
      if (excess !== undefined) command.error(excessMessage(excess));
      await (await import('./serve.ts')).serve(options);
    });
}

function excessMessage(argument: string): string {
  const advice = /^\d+$/.test(argument) ? ` Did you mean --port ${argument}?` : '';
  return `error: too many arguments for 'serve': ${argument}.${advice}`;
}
