import type { Command } from '@commander-js/extra-typings';
import { maxId } from '../../ids.ts';
import { tokenTypes } from '../../oidc/options.ts';
import { Name } from '../../plant.ts';
import { maxRequests } from '../../rate-limit.ts';
import { parseIssuer } from './oidc.ts';
import {
  databaseFlag,
  examples,
  flag,
  integer,
  parseBaseUrl,
  parseHost,
  parseOrigins,
  parserOf,
  parseProxies,
  parseRateOrOff,
  parseRedisUrl,
  parseWorkers,
} from '../options.ts';

/** The options of `serve`, as commander parses them. */
export type ServeOptions = ReturnType<ReturnType<typeof addServeCommand>['opts']>;

export function addServeCommand(plantStore: Command) {
  return plantStore
    .command('serve')
    .description('start the HTTP service')
    .addOption(databaseFlag())
    .addOption(
      flag('--host <host>', 'address to listen on').argParser(parseHost).default('127.0.0.1'),
    )
    .addOption(
      flag('--port <number>', 'port to listen on; 0 chooses a free one')
        .argParser(integer(0, 65_535))
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
      ).argParser(integer(1, maxId)),
    )
    .addOption(
      flag('--max-plants-per-store <number>', 'maximum number of plants in a store').argParser(
        integer(1, maxId),
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
    .addOption(
      flag(
        '--oidc-issuer <url>',
        'identity provider whose access tokens are accepted: its issuer URL',
      ).argParser(parseIssuer),
    )
    .addOption(
      flag('--oidc-audience <text>', 'audience (aud) of those tokens: the name of this API'),
    )
    .addOption(
      flag('--oidc-token-type <type>', 'their type (typ); jwt also accepts JWT and none')
        .choices(tokenTypes)
        .default(tokenTypes[0]),
    )
    .addOption(flag('--oidc-user-claim <claim>', 'claim with the name of the user').default('sub'))
    .addOption(
      flag('--oidc-store <name>', 'store of their users; created if needed')
        .argParser(parserOf(Name))
        .default('main'),
    )
    .addOption(
      flag(
        '--oidc-store-claim <claim>',
        'claim with the name of the store, if not all users have the same',
      ).conflicts('oidcStore'),
    )
    .addOption(
      flag('--oidc-role-claim <claim>', 'claim that makes a user a manager; else a member'),
    )
    .addOption(flag('--oidc-manager-value <text>', 'value of that claim for a manager'))
    .addOption(
      flag('--oidc-scope-prefix <text>', 'what precedes the scopes in the token').default(
        '',
        'none',
      ),
    )
    .addOption(
      flag('--oidc-client-id <text>', 'id of the page at the provider; lets people sign in there'),
    )
    .addOption(
      flag(
        '--oidc-client-scope <list>',
        'scopes that the page requests, separated by spaces; openid and all of the service without it',
      ),
    )
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
        .argParser(integer(1, maxRequests))
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
