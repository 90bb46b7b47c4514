/**
 * The commands that use a running service.
 */
import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { plantFields, shownFields } from '../../plants/fields.ts';
import { Tag, type PlantField } from '../../plants/plant.ts';
import { examples, flag, integer, parseBaseUrl, parseId, parseName, parserOf } from '../options.ts';

export function addPlantsCommands(plantStore: Command): void {
  const plants = plantStore
    .command('plants')
    .description('list, get, add, edit, delete, restore and import plants of a running service');

  plantsCommand(plants, 'list', [
    'plant-store plants list --tag indoor',
    'plant-store plants list --search lodz',
    'plant-store plants list --fields id,name --json | jq ".[].name"',
    'plant-store plants list --csv > plants.csv',
    'plant-store plants list --deleted',
  ])
    .description('list plants: a table on a terminal, otherwise JSON')
    .addOption(
      new Option(
        '--fields <list>',
        `fields in their order, separated by commas: ${shownFields.join(', ')}`,
      )
        .argParser(parseFields)
        .default([...plantFields], plantFields.join(',')),
    )
    .option('--tag <text>', 'only plants with exactly this tag')
    .option('--search <text>', 'only plants whose name or tag contains this text, in any case')
    .addOption(
      new Option(
        '--deleted',
        'only deleted plants that you can restore, the newest first',
      ).conflicts(['fields', 'tag', 'search']),
    )
    .option('--limit <number>', 'maximum number of plants', parseId)
    .addOption(new Option('--csv', 'write CSV').conflicts('json'))
    .action(async (options) => (await import('./list.ts')).listPlants(options));

  plantsCommand(plants, 'get', ['plant-store plants get 40'])
    .description('show a plant: a table on a terminal, otherwise JSON')
    .argument('<id>', 'id of the plant', parseId)
    .action(async (id, options) => (await import('./plants.ts')).getPlant(id, options));

  plantsCommand(plants, 'add', [
    'plant-store plants add Monstera --tag indoor',
    'plant-store plants add "Ficus lyrata" --id 40 --json',
  ])
    .description('add a plant')
    .argument('<name>', 'name of the plant')
    .option('--tag <text>', 'tag of the plant')
    .option('--id <number>', 'id of the plant; without it, the service assigns one', parseId)
    .action(async (name, options) => (await import('./plants.ts')).addPlant(name, options));

  plantsCommand(plants, 'edit', [
    'plant-store plants edit 40 --name "Ficus lyrata"',
    "plant-store plants edit 40 --tag ''",
  ])
    .description('change the name or the tag of a plant')
    .argument('<id>', 'id of the plant', parseId)
    .option('--name <text>', 'new name', parseName)
    .option('--tag <text>', 'new tag; an empty text removes the tag', parserOf(Tag))
    .action(async (id, options) => (await import('./plants.ts')).editPlant(id, options));

  plantsCommand(plants, 'restore', ['plant-store plants restore 40'])
    .description('bring a deleted plant back as it was')
    .argument('<id>', 'id of the plant', parseId)
    .action(async (id, options) => (await import('./plants.ts')).restorePlant(id, options));

  plantsCommand(plants, 'history', ['plant-store plants history 40'])
    .description('show who changed a plant, and when, the newest change first')
    .argument('<id>', 'id of the plant', parseId)
    .action(async (id, options) => (await import('./plants.ts')).showHistory(id, options));

  plantsCommand(plants, 'rm', [
    'plant-store plants rm 40 41',
    'plant-store plants list --tag dead --json | jq ".[].id" | xargs plant-store plants rm',
  ])
    .description('delete plants')
    .argument('<id...>', 'ids of the plants', parseIds)
    .action(async (ids, options, command) => {
      const isOnCommandLine = command.getOptionValueSource('url') === 'cli';
      const flags = isOnCommandLine ? ` --url '${options.url.replaceAll("'", '%27')}'` : '';
      await (await import('./plants.ts')).removePlants(ids, options, flags);
    });

  plantsCommand(plants, 'import', [
    'plant-store plants import plants.csv',
    'plant-store plants import plants.json --concurrency 8',
    'curl -s https://plants.example/list.csv | plant-store plants import - --key list',
  ])
    .description(
      'add the plants of a CSV or JSON file; to continue after an interruption, run it again',
    )
    .argument('<file>', 'path of the file; - reads standard input')
    .option('--concurrency <number>', 'number of requests in flight', integer(1, 1_000), 32)
    .option(
      '--key <text>',
      'identifies this import: with the same key, a row is not added again for 24 hours; by default the content of the file, and a random text for a pipe',
    )
    .action(async (file, options) => (await import('./import.ts')).importFile(file, options));
}

function plantsCommand(plants: Command, name: string, lines: readonly string[]) {
  return plants
    .command(name)
    .addOption(
      flag('--url <url>', 'address of the service')
        .argParser(parseBaseUrl)
        .default('http://127.0.0.1:8080', 'http://127.0.0.1:8080'), // a description has no quotes
    )
    .addOption(
      flag(
        '--token <token>',
        'token, @FILE to read it from a file, or - for standard input; prefer the variable, because other users can see arguments',
      ),
    )
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples(lines));
}

function parseFields(text: string): PlantField[] {
  const wanted = text.split(',').map((one) => one.trim());
  const fields = wanted.flatMap((one) => shownFields.find((field) => field === one) ?? []);
  if (fields.length < wanted.length || new Set(fields).size < wanted.length) {
    throw new InvalidArgumentError(`Use one or more of ${shownFields.join(', ')}, each once.`);
  }
  return fields;
}

function parseIds(text: string, ids: readonly number[] = []): number[] {
  return [...ids, parseId(text)];
}
