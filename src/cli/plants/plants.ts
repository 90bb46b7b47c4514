/**
 * The commands that use a running service.
 */
import type { Command } from '@commander-js/extra-typings';
import type { Plant, PlantStore } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { printable } from '../../client/printable.ts';
import { isProblem } from '../../client/problem.ts';
import { maxHistory } from '../../log/change-log.ts';
import { plantFields, textFields, textsOf, type Texts } from '../../plants/fields.ts';
import { Tag } from '../../plants/plant.ts';
import { UsageError } from '../../refusal.ts';
import { parseId, parseName, parserOf } from '../options.ts';
import { failWith, listed, print, printError, type Result } from '../output.ts';
import { printableJson, tableOf } from '../terminal.ts';
import { onService, printsJson, serviceCommand, type ServiceOptions } from '../service.ts';
import { addImportCommand } from './import.ts';
import { addListCommand } from './list.ts';
import { addWatchCommand } from './watch.ts';

/** Plants that are deleted at the same time. */
const concurrency = 32;

export function addPlantsCommands(plantStore: Command): void {
  const plants = plantStore
    .command('plants')
    .description(
      'list, get, add, edit, delete, restore, import and watch plants of a running service',
    );

  addListCommand(plants);

  serviceCommand(plants, 'get', ['plant-store plants get 40'])
    .description('show a plant: a table on a terminal, otherwise JSON')
    .argument('<id>', 'id of the plant', parseId)
    .action(
      onService(async (store, id) => {
        const plant = await store.get(id, { fields: plantFields });
        return { value: plant, text: tableOf(plantFields, [plant]) };
      }),
    );

  serviceCommand(plants, 'add', [
    'plant-store plants add Monstera --tag indoor',
    'plant-store plants add "Ficus lyrata" --id 40 --json',
  ])
    .description('add a plant')
    .argument('<name>', 'name of the plant')
    .option('--tag <text>', 'tag of the plant')
    .option('--id <number>', 'id of the plant; without it, the service assigns one', parseId)
    .action(
      onService(async (store, name, options) => {
        const plant = { ...ownOptions(options), name };
        const { id } = await store.create(plant);
        return resultOf('Added', { id, ...textsOf(plant) });
      }),
    );

  serviceCommand(plants, 'edit', [
    'plant-store plants edit 40 --name "Ficus lyrata"',
    "plant-store plants edit 40 --tag ''",
  ])
    .description('change the name or the tag of a plant')
    .argument('<id>', 'id of the plant', parseId)
    .option('--name <text>', 'new name', parseName)
    .option('--tag <text>', 'new tag; an empty text removes the tag', parserOf(Tag))
    .hook('preAction', (command) => {
      const texts: Partial<Texts> = command.opts();
      if (textFields.some((field) => texts[field] !== undefined)) return;
      const ways = textFields.map((field) => `a new ${field} with --${field}`).join(', or ');
      throw new UsageError(`Nothing to change. Set ${ways}.`);
    })
    .action(
      onService(async (store, id, options) => {
        const patch = ownOptions(options);
        return resultOf('Updated', await store.update(id, patch, { fields: plantFields }));
      }),
    );

  serviceCommand(plants, 'restore', ['plant-store plants restore 40'])
    .description('bring a deleted plant back as it was')
    .argument('<id>', 'id of the plant', parseId)
    .action(
      onService(async (store, id) => {
        return resultOf('Restored', await store.restore(id, { fields: plantFields }));
      }),
    );

  serviceCommand(plants, 'history', ['plant-store plants history 40'])
    .description('show who changed a plant, and when, the newest change first')
    .argument('<id>', 'id of the plant', parseId)
    .action(onService(showHistory));

  serviceCommand(plants, 'rm', [
    'plant-store plants rm 40 41',
    'plant-store plants list --tag dead --json | jq ".[].id" | xargs plant-store plants rm',
  ])
    .description('delete plants')
    .argument('<id...>', 'ids of the plants', parseIds)
    .action(
      onService(async (store, ids, { url, profile, json }, command) => {
        const isOnCommandLine = command.getOptionValueSource('url') === 'cli';
        const address = isOnCommandLine ? ` --url '${url.replaceAll("'", '%27')}'` : '';
        const flags = profile === undefined ? address : `${address} --profile ${profile}`;
        const results = inParallel(new Set(ids), concurrency, (id) => removePlant(store, id));
        for await (const { id, name, status } of results) {
          if (status !== 'deleted') failWith(1);
          if (json) print(printableJson({ id, name, status }));
          else if (status === 'deleted') {
            print(
              `Deleted plant ${named(id, name)}. Undo: npx plant-store plants restore ${id}${flags}`,
            );
          } else if (status === 'not found') {
            printError(`error: There is no plant ${id}, or you do not have access to it.`);
          } else printError(`error: You can see plant ${id}, but not delete it.`);
        }
      }),
    );

  addImportCommand(plants);
  addWatchCommand(plants);
}

/** The options that not every command has. */
function ownOptions<Options extends ServiceOptions>(options: Options) {
  const { url: _url, token: _token, profile: _profile, json: _json, ...own } = options;
  return own;
}

function parseIds(text: string, ids: readonly number[] = []): number[] {
  return [...ids, parseId(text)];
}

/** A token without `plants:read` does not get all of the plant. */
function resultOf(done: string, plant: Pick<Plant, 'id'> & Partial<Plant>): Result {
  return { value: plant, text: `${done} plant ${named(plant.id, plant.name)}.` };
}

function named(id: number, name: string | undefined): string {
  return name === undefined ? `${id}` : `${id}: ${printable(name)}`;
}

async function showHistory(
  store: PlantStore,
  id: number,
  options: ServiceOptions,
): Promise<Result> {
  const changes = await store.history(id);
  const past = [...textFields, 'owner'] as const;
  const columns = ['at', 'user', 'change', ...past.map((field) => `${field} before`)];
  const rows = changes.map(({ at, user = 'the operator', event: change, before }) => {
    const beforeIt = past.map((field) => [`${field} before`, before?.[field]]);
    return { at, user, change, ...Object.fromEntries(beforeIt) };
  });
  const isCut = changes.length === maxHistory && changes.at(-1)?.event !== 'created';
  if (isCut && !printsJson(options)) printError(`Only the latest ${maxHistory} changes are shown.`);
  return listed(columns, rows, changes);
}

/** Deletes a plant, unless it does not exist or can only be read. */
async function removePlant(store: PlantStore, id: number) {
  const { name } = await store.get(id).catch((error: unknown) => {
    // A token can lack the scope to read.
    if (isProblem(error, 'insufficient-scope') || isProblem(error, 'plant-not-found'))
      return { name: undefined };
    throw error;
  });
  try {
    await store.delete(id);
    return { id, name, status: 'deleted' };
  } catch (error) {
    if (isProblem(error, 'plant-not-found')) return { id, status: 'not found' };
    if (isProblem(error, 'plant-read-only')) return { id, name, status: 'read only' };
    throw error;
  }
}
