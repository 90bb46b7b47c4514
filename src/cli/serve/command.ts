import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings';
import { UsageError } from '../../refusal.ts';
import { minKeepChangesMs } from '../../webhooks/webhook.ts';
import { fileOf } from '../database.ts';
import { examples, isFrom } from '../options.ts';
import { addServeOptions, type ServeOptions } from './options.ts';

export function addServeCommand(plantStore: Command): void {
  addServeOptions(plantStore.command('serve').description('start the HTTP service'))
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
      refuseIncomplete(command);
      refuseShortLog(options);
      if (options.backupEvery !== undefined) fileOf(options.database);
      await (await import('./serve.ts')).serve(options);
    });
}

function excessMessage(argument: string): string {
  const advice = /^\d+$/.test(argument) ? ` Did you mean --port ${argument}?` : '';
  return `error: too many arguments for 'serve': ${argument}.${advice}`;
}

function refuseShortLog({ webhookNetworks, keepChanges }: ServeOptions): void {
  if (webhookNetworks === undefined || keepChanges >= minKeepChangesMs) return;
  throw new UsageError(
    '--webhook-networks requires --keep-changes of at least 4d, because messages that do not arrive are sent again for 3 days.',
  );
}

/** Settings that need another one. */
const requirements: readonly (readonly [keyof ServeOptions, requires: keyof ServeOptions])[] = [
  ['tlsCert', 'tlsKey'],
  ['tlsKey', 'tlsCert'],
  ['metricsHost', 'metricsPort'],
  ['rateLimitRedis', 'rateLimit'],
  ['oidcIssuer', 'oidcAudience'],
  ['oidcAudience', 'oidcIssuer'],
  ['oidcStoreClaim', 'oidcIssuer'],
  ['oidcRoleClaim', 'oidcManagerValue'],
  ['oidcManagerValue', 'oidcRoleClaim'],
  ['oidcManagerValue', 'oidcIssuer'],
  ['oidcClientId', 'oidcIssuer'],
  ['oidcClientScope', 'oidcClientId'],
  ['backupEvery', 'backupDir'],
  ['backupDir', 'backupEvery'],
  ['backupKeep', 'backupEvery'],
  ['backupHeartbeat', 'backupEvery'],
];

function refuseIncomplete(command: CommandUnknownOpts): void {
  const isSet = (name: string) => isFrom(command, name, 'cli', 'env');
  const flagOf = (name: string) =>
    command.options.find((option) => option.attributeName() === name)?.long;
  for (const [name, other] of requirements) {
    if (!isSet(name) || (isSet(other) && command.getOptionValue(other) !== 'off')) continue;
    const flag = flagOf(name);
    throw new UsageError(`${flag} requires ${flagOf(other)}. Set both, or leave out ${flag}.`);
  }
}
