/**
 * Completes commands, flags and their choices. At each Tab, the shell runs `complete` with the line so far in
 * COMP_LINE, as bash does, and gets the words that can come next.
 */
import { Argument, type Command, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { examples } from './options.ts';
import { failWith, print } from './output.ts';

const forBash = "complete -o default -C 'plant-store complete --' plant-store";

/** What the user's shell runs when it starts. */
const scripts = {
  bash: forBash,
  zsh: `autoload -U +X bashcompinit && bashcompinit\n${forBash}`,
  fish: "complete -c plant-store -f -a '(COMP_LINE=(commandline -cp) plant-store complete; or __fish_complete_path (commandline -ct))'",
};

export function addCompletionCommands(plantStore: Command): void {
  plantStore
    .command('completion')
    .description('print a script that completes commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', examples(['plant-store completion bash']))
    .action((shell) => print(scripts[shell]));
  plantStore
    .command('complete [words...]', { hidden: true })
    .action(() => printNextWords(plantStore, process.env['COMP_LINE'] ?? ''));
}

/** Prints the words that can come next. If there is none, the status is 1, and the shell completes a file. */
function printNextWords(plantStore: CommandUnknownOpts, line: string): void {
  const [, ...words] = line.split(/\s+/);
  const start = words.pop() ?? '';
  let command = plantStore;
  for (const word of words) {
    command = command.commands.find((inner) => inner.name() === word) ?? command;
  }
  const help = command.createHelp();
  const options = help.visibleOptions(command);
  const last = options.find(({ long }) => long === words.at(-1));
  const next = last?.required
    ? (last.argChoices ?? [])
    : [
        ...help.visibleCommands(command).map((inner) => inner.name()),
        ...command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
        ...options.map(({ long }) => long ?? ''),
      ];
  const matching = next.filter((word) => word.startsWith(start));
  if (matching.length === 0) failWith(1);
  else print(matching.join('\n'));
}
