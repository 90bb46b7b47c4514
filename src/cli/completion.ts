/**
 * Scripts that complete commands, flags and their choices in a shell. They are made from the commands themselves.
 */
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { print } from './output.ts';

export function printCompletion(
  plantStore: CommandUnknownOpts,
  shell: 'bash' | 'zsh' | 'fish',
): void {
  const places = placesOf(plantStore, '');
  print(shell === 'fish' ? fishScript(places) : bashScript(places, shell));
}

/** A command, with its names in `path`, and what can follow it. */
interface Place {
  path: string;
  commands: readonly CommandUnknownOpts[];
  options: readonly Option[];
  choices: readonly string[];
  takesFile: boolean;
}

function placesOf(command: CommandUnknownOpts, path: string): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command);
  const { registeredArguments } = command;
  const choices = registeredArguments.flatMap((argument) => argument.argChoices ?? []);
  const takesFile = registeredArguments.some((argument) => argument.name() === 'file');
  const inner = commands.flatMap((each) => placesOf(each, `${path} ${each.name()}`.trim()));
  return [{ path, commands, options, choices, takesFile }, ...inner];
}

/** zsh runs it too, with its functions for scripts of bash. */
function bashScript(places: readonly Place[], shell: 'bash' | 'zsh'): string {
  const ofOptions = places.flatMap(({ path, options }) =>
    options.flatMap(({ long, argChoices }) =>
      argChoices ? [`    '${path} ${long}') words='${argChoices.join(' ')}' ;;`] : [],
    ),
  );
  const withValue = places.flatMap(({ options }) => options.filter(({ required }) => required));
  const free = new Set(withValue.map(({ long }) => `*' ${long}'`));
  const words = places.map(({ path, commands, options, choices }) => {
    const names = commands.map((each) => each.name());
    const all = [...names, ...choices, ...options.map(({ long }) => long)];
    return `    '${path} '*) words='${all.join(' ')}' ;;`;
  });
  const paths = places.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_plant_store() {
  local path='' words='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${path:+$path }\${COMP_WORDS[at]}" in
      ${paths.join('|')}) path="\${path:+$path }\${COMP_WORDS[at]}" ;;
    esac
  done
  case "$path \${COMP_WORDS[COMP_CWORD-1]}" in
${[...ofOptions, `    ${[...free].join('|')}) ;;`, ...words.toReversed()].join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _plant_store plant-store`;
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options, choices, takesFile }) => {
    const at = `complete -c plant-store -n '__plant_store_at "${path}"'`;
    return [
      ...(takesFile ? [`${at} -F`] : []),
      ...choices.map((choice) => `${at} -a ${choice}`),
      ...commands.map((each) => `${at} -a ${each.name()} -d ${quoted(each.description())}`),
      ...options.map(({ long, required, argChoices, description }) => {
        const value = argChoices ? ` -x -a '${argChoices.join(' ')}'` : required ? ' -r -F' : '';
        return `${at} -l ${long?.slice(2)}${value} -d ${quoted(description)}`;
      }),
    ];
  });
  const paths = places.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  return `function __plant_store_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- (string trim "$path $word") ${paths.join(' ')}; and set path (string trim "$path $word")
  end
  test "$path" = "$argv[1]"
end
complete -c plant-store -f
${lines.join('\n')}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\\\]/g, String.raw`\$&`)}'`;
}
