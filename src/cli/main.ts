/**
 * The program. The commands of each folder load what is large when they run.
 * Exit status: 0 success, 1 failure or lost output, 2 invalid usage, 3 storage failure.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { addApiCommand } from './account/api.ts';
import { addAccountCommands } from './account/login.ts';
import { addAccessCommand } from './admin/access.ts';
import { addDatabaseCommands } from './admin/databases.ts';
import { addLogCommand } from './admin/log.ts';
import { addShareCommands } from './admin/shares.ts';
import { addTokenCommands } from './admin/tokens.ts';
import { addUserCommands } from './admin/users.ts';
import { addCompletionCommands } from './completion.ts';
import { addDoctorCommand } from './doctor/doctor.ts';
import { examples } from './options.ts';
import { failWith, io, printError, runWith, type Io } from './output.ts';
import { addMcpCommand } from './mcp.ts';
import { addPlantsCommands } from './plants/plants.ts';
import { exitStatusOf, reasonOf, redactSecrets } from './errors.ts';
import { addServeCommand } from './serve/command.ts';
import { refuseBlankValues, refuseInvalidText, refuseUnknownVariables } from './settings.ts';

const packageFile = new URL('../../package.json', import.meta.url);

/** Resolves to the exit status. */
export function main(argv: readonly string[], streams: Io = process): Promise<number> {
  return runWith(streams, async () => {
    try {
      refuseInvalidText(argv, process.env);
      await program().parseAsync(argv);
    } catch (error) {
      if (error instanceof CommanderError) {
        if (error.exitCode !== 0) failWith(2); // commander has printed the error
        return;
      }
      const reason = reasonOf(error);
      if (reason === undefined) throw error;
      printError(redactSecrets(`error: ${reason}`));
      failWith(exitStatusOf(error));
    }
  });
}

/** The commands with their options, for `main` and for docs/reference/commands.md. */
export function program() {
  const { version, description } = JSON.parse(readFileSync(packageFile, 'utf8'));
  const plantStore = new Command('plant-store')
    .description(description)
    .version(version)
    .exitOverride()
    .enablePositionalOptions() // "share" has options, and commands with the same ones
    // An error quotes mistyped arguments, which can contain a password or a token.
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => printError(redactSecrets(text.trimEnd())),
    })
    .showHelpAfterError('(add --help for usage)')
    .addHelpText('after', examples(['plant-store serve', 'plant-store token create alice']));

  addServeCommand(plantStore);
  addTokenCommands(plantStore);
  addUserCommands(plantStore);
  addShareCommands(plantStore);
  addAccessCommand(plantStore);
  addLogCommand(plantStore);
  addDatabaseCommands(plantStore);
  addDoctorCommand(plantStore);
  addPlantsCommands(plantStore);
  addMcpCommand(plantStore);
  addAccountCommands(plantStore);
  addApiCommand(plantStore);
  addCompletionCommands(plantStore);
  refuseBlankValues(plantStore);
  const variables = variablesOf(plantStore);
  plantStore.hook('preAction', (_, { options }) => {
    const hasVariables = options.some(({ envVar }) => envVar !== undefined);
    if (hasVariables) refuseUnknownVariables(variables, process.env);
  });
  return plantStore;
}

/** The variables of all options of the command, and of those below it. */
function variablesOf({ options, commands }: CommandUnknownOpts): string[] {
  return [...options.flatMap(({ envVar }) => envVar ?? []), ...commands.flatMap(variablesOf)];
}
