/**
 * Checks of arguments and environment variables, the same for every command.
 */
import { InvalidArgumentError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { optionalTexts } from '../plants/fields.ts';
import { UsageError } from '../refusal.ts';

const prefix = 'PLANT_STORE_';

/**
 * What can be blank: no tag or other text of a plant, no label, and the words of a command line that is being completed.
 * Commands refuse a blank token themselves, and show how to create one.
 */
const canBeBlank = new Set<string>([...optionalTexts, 'label', 'words', 'token']);

/** Makes all options and arguments of the command, and of those below it, refuse a blank value. */
export function refuseBlankValues(command: CommandUnknownOpts): void {
  const options = command.options.filter(({ required, optional }) => required || optional);
  for (const target of [...options, ...command.registeredArguments]) {
    if (canBeBlank.has(target.name())) continue;
    const { parseArg } = target;
    target.parseArg = (value, previous) => {
      if (value.trim() === '') throw new InvalidArgumentError('Use a value that is not blank.');
      // Without a parser, the value is the text itself.
      return parseArg === undefined ? (value as typeof previous) : parseArg(value, previous);
    };
  }
  command.commands.forEach(refuseBlankValues);
}

/** Node replaces bytes that are not UTF-8 with U+FFFD, so different names would become the same one. */
export function refuseInvalidText(argv: readonly string[], env: NodeJS.ProcessEnv): void {
  const args = argv.slice(2).map((text, at) => [`Argument ${at + 1}`, text] as const);
  const variables = settingsIn(env).map(
    ([name, text]) => [`The variable ${name}`, name + text] as const,
  );
  const [place] = [...args, ...variables].find(([, text]) => text.includes('\uFFFD')) ?? [];
  if (place === undefined) return;
  throw new UsageError(`${place} is not valid UTF-8, or contains U+FFFD. Write it in UTF-8.`);
}

/** Refuses a variable that no option has, because it is a typo or of another version. */
export function refuseUnknownVariables(known: readonly string[], env: NodeJS.ProcessEnv): void {
  for (const [name, value] of settingsIn(env)) {
    if (known.includes(name) || name.startsWith(`${prefix}TEST_`) || isOfLink(name, value))
      continue;
    throw new UsageError(`There is no setting ${name}. Each command lists its own with --help.`);
  }
}

function settingsIn(env: NodeJS.ProcessEnv): [name: string, value: string][] {
  return Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(prefix) && value !== undefined ? [[name, value]] : [],
  );
}

/**
 * Whether a variable has the address of a linked service: a service "plant-store" of Kubernetes, and a link of Docker with
 * this name, set PLANT_STORE_PORT=tcp://10.0.0.1:8080.
 */
export function isServiceLink(name: string, value = ''): boolean {
  return name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value);
}

/** Whether Kubernetes or Docker set the variable, also for a service such as "plant-store-db". */
function isOfLink(name: string, value: string): boolean {
  return (
    isServiceLink(name, value) ||
    /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_\w+$|^PLANT_STORE_(?:NAME|ENV_\w+)$/.test(name)
  );
}
