/**
 * The plants that the page shows. Whatever adds, changes or removes one calls a function here, and what shows plants
 * listens to `onChange`.
 */
import type { ChangeWith, Plant, ResponseInfo } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { isProblem } from '../../client/problem.ts';
import { can, info, store } from '../session/session.ts';
import { byId, changed, element, sentence, type Text } from '../shared/dom.ts';
import { orders } from './orders.ts';
import { pageSize, PlantList, rowFields } from './plant-list.ts';
import { hasTag, parametersOf, viewOfAddress, type View } from './view.ts';

export type Change = ChangeWith<typeof rowFields>;

/** Which plants the table shows. */
export let view: View = {};
/** Undefined if the token of the page cannot read plants. */
export let list: PlantList | undefined;
/** The list of a search, until its first plants arrive. */
let nextList: PlantList | undefined;
/** Tags of the plants that were loaded, to suggest them. */
export const knownTags = new Set<string>();
const maxKnownTags = 1_000;
/** Browsers show all suggestions of a field at once. */
const maxSuggestedTags = 100;
/** Maximum number of plants in a page of the service. */
const maxPage = 1_000;

/** Shows what the address asks for. */
export function showView(): void {
  view = viewOfAddress();
  reload();
}

addEventListener('hashchange', () => {
  if (can('plants:read') && parametersOf(viewOfAddress()) !== parametersOf(view)) showView();
});

/** Shows another view. The back button returns to this one. */
export function showOnly(wanted: View): void {
  if (parametersOf(wanted) === parametersOf(view)) return;
  history.pushState(null, '', `#${parametersOf(wanted)}`);
  showView();
}

/** Shows only the plants with this tag, or all if it shows only them already. */
export function toggleTag(tag: string): void {
  showOnly({ ...view, tag: tag === view.tag ? undefined : tag });
}

/** Shows the plants of the view as they are now in the service, from the beginning. */
export function reload(): void {
  if (can('plants:read')) showList(openList());
}

/**
 * Shows the plants that contain a text. Until they arrive, the table stays as it is, so that it does not flicker.
 * Returns whether it shows them then. The back button returns to what was there before the search.
 */
export async function search(q: string | undefined): Promise<boolean> {
  const before = view;
  list?.stop();
  await list?.settled();
  if (view !== before) return false; // the user has chosen another one meanwhile
  const isNext = (q === undefined) === (view.q === undefined);
  view = { ...view, q };
  const address = `#${parametersOf(view)}`;
  if (isNext) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  const opened = openList();
  nextList = opened;
  opened.see(0);
  await opened.settled();
  return list === opened;
}

/** The plants of the view. */
function openList(): PlantList {
  const { tag, q, sort } = view;
  const source = {
    pages: () => readPages({ tag, q, sort }),
    compare: orders[sort ?? 'id'],
    count: () => store.count({ tag, q }),
  };
  const opened: PlantList = new PlantList(source, () => {
    if (nextList === opened) showList(opened);
    else if (list === opened) changed();
  });
  return opened;
}

async function* readPages(filter: View) {
  let isLast = false;
  let after: number | undefined;
  const onResponse = ({ headers }: ResponseInfo) => (isLast = !headers.has('link'));
  const options = { ...filter, fields: rowFields, onResponse };
  // The first page is small, so that it comes soon. But each sorted page costs the service a search of all plants.
  const sizes = filter.sort === undefined ? [pageSize, maxPage] : [maxPage];
  for (const size of sizes) {
    for await (const plants of store.pages({ ...options, pageSize: size, after })) {
      suggestTags(plants);
      yield { plants, isLast };
      after = plants.at(-1)?.id ?? after;
      if (isLast) return;
      if (size !== sizes.at(-1)) break;
    }
  }
}

function showList(opened: PlantList): void {
  nextList = undefined;
  list = opened;
  changed();
}

/** Shows plants that are new here, if they are in the view. */
export function addPlants(plants: readonly Plant[]): void {
  suggestTags(plants);
  if (view.q !== undefined) return reload(); // only the service knows what contains the text
  (nextList ?? list)?.add(plants.filter((plant) => hasTag(view, plant)));
}

/** Shows plants as they are now. Their rows stay, also if the view would no longer have them. */
export function updatePlants(...plants: Plant[]): void {
  suggestTags(plants);
  for (const each of [list, nextList]) each?.replace(plants);
}

export function removePlants(...ids: number[]): void {
  for (const each of [list, nextList]) each?.apply(new Map(ids.map((id) => [id, undefined])));
}

/** Reads all rows again. What is shown stays until then, and where it is as far as possible. */
export async function refreshPlants(): Promise<void> {
  for (const each of [list, nextList]) each?.refresh();
  await (nextList ?? list)?.settled();
}

/** Shows what has happened in the service. Returns what the table did not show yet, each with the plant of its row. */
export function showChanges(
  changes: readonly Change[],
): { change: Change; before: Plant | undefined }[] {
  suggestTags(changes.flatMap(({ plant }) => plant ?? []));
  const current = new Map<number, Plant | undefined>();
  const news = changes.flatMap((change) => {
    const { id, plant } = change;
    const before = (nextList ?? list)?.find(id);
    const stays = before !== undefined && (isOwn(change) || view.q !== undefined);
    const now = plant && (stays || hasTag(view, plant)) ? plant : undefined;
    // Only the service knows whether another plant contains the text of a search.
    if (before !== undefined || now === undefined || view.q === undefined) current.set(id, now);
    const isShown = rowFields.every((field) => now?.[field] === before?.[field]);
    return isShown ? [] : { change, before };
  });
  for (const each of [list, nextList]) each?.apply(current);
  return news;
}

/** Whether this user made the change: on this page, most likely. */
export function isOwn({ user }: Change): boolean {
  return user === info?.user;
}

/** Shows a plant as the service has it now; undefined if it is not there for this user. */
export async function readPlant(id: number): Promise<Plant | undefined> {
  const plant = await ifFound(store.get(id, { fields: rowFields }));
  if (plant === undefined) removePlants(id);
  else updatePlants(plant);
  return plant;
}

/** What has happened to a plant that is no longer there for this user. */
export function goneText({ owner }: Plant, what: Text): Text {
  const isShared = owner !== info?.user && info?.role !== 'manager';
  return sentence`Someone has deleted ${what}${isShared ? ', or no longer shares it with you' : ''}.`;
}

/** What was read about a plant; undefined if it is not there for this user. */
export async function ifFound<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return undefined;
  }
}

function suggestTags(plants: readonly Plant[]): void {
  const tags = new Set(plants.map(({ tag }) => tag)).difference(knownTags);
  tags.delete('');
  if (tags.size === 0) return; // an open list of suggestions stays open
  for (const tag of tags) knownTags.add(tag);
  for (const tag of [...knownTags].slice(0, -maxKnownTags)) knownTags.delete(tag);
  // The browser shows suggestions as they are.
  const suggested = [...knownTags].filter((tag) => printable(tag) === tag);
  byId('known-tags', HTMLDataListElement).replaceChildren(
    ...suggested.slice(-maxSuggestedTags).map((value) => element('option', { value })),
  );
}
