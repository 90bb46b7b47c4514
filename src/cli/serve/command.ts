import type { Command } from '@commander-js/extra-typings';
import { examples } from '../options.ts';
import { addServeOptions } from './options.ts';

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
      await (await import('./serve.ts')).serve(options);
    });
}

function excessMessage(argument: string): string {
  const advice = /^\d+$/.test(argument) ? ` Did you mean --port ${argument}?` : '';
  return `error: too many arguments for 'serve': ${argument}.${advice}`;
}
