/**
 * The imports of this browser, in IndexedDB. It stores which rows were added, so that none is added twice. It also
 * stores the text of an incomplete import, so that it can continue after a reload. Signing out deletes what it stores of
 * the user.
 */
import type { Token } from '../client/client.ts';
import type { ImportJournal, JournalEntry } from '../client/import.ts';
import type { Mapping } from '../client/rows.ts';
import { serviceUrl } from './connection.ts';

/** What is imported. An earlier source of the same name is the same file, perhaps with fixed rows. */
export interface Source {
  name: string;
  text: string;
  /** Undefined for JSON. */
  mapping: Mapping | undefined;
}

/** An import as it is stored. It has a source until it is complete. */
interface Stored {
  owner: string;
  name: string;
  source: Source | undefined;
}

const databaseName = 'plant-store-imports';

/** The journal of one import. */
export class PageJournal implements ImportJournal {
  readonly entries: ReadonlyMap<string, JournalEntry>;
  readonly #map: Map<string, JournalEntry>;
  readonly #key: readonly [owner: string, name: string];
  #pending: { key: string; before: JournalEntry | undefined; entry: JournalEntry }[] = [];
  #next: Promise<void> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(owner: string, name: string, entries: Map<string, JournalEntry>) {
    this.#key = [owner, name];
    this.#map = entries;
    this.entries = entries;
  }

  /** Reads the journal of the source with this name. `owner` is a user of a store. */
  static async open(owner: string, name: string): Promise<PageJournal> {
    const all = IDBKeyRange.bound([owner, name], [owner, name, []]);
    const [keys, values] = await transact('entries', 'readonly', (store) => [
      store.getAllKeys(all),
      store.getAll(all),
    ]);
    const entries = keys.map((key, at): [string, JournalEntry] => {
      const [, , row] = key as [string, string, string]; // written below
      return [row, values[at]];
    });
    return new PageJournal(owner, name, new Map(entries));
  }

  /** The source of an import of this owner that is not complete. */
  static async findUnfinished(owner: string): Promise<Source | undefined> {
    const range = IDBKeyRange.bound([owner], [owner, []]);
    const [imports] = await transact('imports', 'readonly', (store) => [store.getAll(range)]);
    const found: Stored | undefined = imports.find((each: Stored) => each.source !== undefined);
    return found?.source;
  }

  /** Stores the source, so that the import can continue. Undefined marks the import as complete. */
  async setSource(source: Source | undefined): Promise<void> {
    const [owner, name] = this.#key;
    const stored: Stored = { owner, name, source };
    await transact('imports', 'readwrite', (store) => [store.put(stored)]);
  }

  /** Deletes every entry, so that the import adds all rows. */
  async clear(): Promise<void> {
    const all = IDBKeyRange.bound(this.#key, [...this.#key, []]);
    await transact('entries', 'readwrite', (store) => [store.delete(all)]);
    this.#map.clear();
  }

  /** If it fails, the entry stays as it was. Writes that come while another is stored share a transaction. */
  write(key: string, entry: JournalEntry): Promise<void> {
    this.#pending.push({ key, before: this.#map.get(key), entry });
    this.#map.set(key, entry);
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => this.#flush());
      this.#last = this.#next.catch(() => {});
    }
    return this.#next;
  }

  async #flush(): Promise<void> {
    const writes = this.#pending;
    this.#pending = [];
    this.#next = undefined;
    await transact('entries', 'readwrite', (store) => {
      for (const { key, before, entry } of writes) {
        const place = [...this.#key, key];
        const found: IDBRequest<JournalEntry | undefined> = store.get(place);
        found.addEventListener('success', () => {
          if (JSON.stringify(found.result) === JSON.stringify(before)) store.put(entry, place);
          else store.transaction.abort();
        });
      }
      return [];
    }).catch((cause: unknown) => {
      for (const { key, before } of writes) {
        if (before === undefined) this.#map.delete(key);
        else this.#map.set(key, before);
      }
      throw new Error(notStored, { cause });
    });
  }
}

/** Who imports: a user of a store of this service. */
export function ownerOf({ store, user }: Token): string {
  return `${serviceUrl.href} ${JSON.stringify([store, user])}`;
}

/** Deletes what this browser stores about imports of this owner. Another tab that imports for them stops. */
export async function deleteImports(owner: string): Promise<void> {
  const all = IDBKeyRange.bound([owner], [owner, []]);
  const deletions = (['imports', 'entries'] as const).map((name) =>
    transact(name, 'readwrite', (store) => [store.delete(all)]),
  );
  // Whoever signs out must not wait for a browser that stores nothing, or that does not respond.
  await Promise.race([Promise.allSettled(deletions), new Promise((end) => setTimeout(end, 2_000))]);
}

const notStored =
  'The progress could not be stored. If another tab imports the same file, continue there, or close it.';

const noStorage =
  'This browser does not let the page store its progress, which an import needs. Leave private mode.';

let opened: Promise<IDBDatabase> | undefined;

/** Runs requests in one transaction. Resolves to their results when it is on the disk. */
async function transact<Requests extends readonly IDBRequest[]>(
  name: 'imports' | 'entries',
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => readonly [...Requests],
): Promise<{ [At in keyof Requests]: Requests[At] extends IDBRequest<infer T> ? T : never }> {
  const database = await openOnce();
  const transaction = database.transaction(name, mode, { durability: 'strict' });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  transaction.addEventListener('complete', () => resolve());
  transaction.addEventListener('abort', () => reject(transaction.error));
  const requests = work(transaction.objectStore(name));
  await promise;
  return requests.map(({ result }) => result) as never; // the same order
}

function openOnce(): Promise<IDBDatabase> {
  return (opened ??= open().catch((cause: unknown) => {
    opened = undefined; // the next attempt can succeed
    throw new Error(noStorage, { cause });
  }));
}

async function open(): Promise<IDBDatabase> {
  const { promise, resolve, reject } = Promise.withResolvers<IDBDatabase>();
  const request = indexedDB.open(databaseName, 1); // throws if the browser blocks it
  request.addEventListener('upgradeneeded', () => {
    request.result.createObjectStore('imports', { keyPath: ['owner', 'name'] });
    request.result.createObjectStore('entries');
  });
  request.addEventListener('error', () => reject(request.error));
  request.addEventListener('success', () => {
    const { result } = request;
    // The user can delete the data of the site.
    result.addEventListener('close', () => (opened = undefined));
    // A later version of the page can need another schema.
    result.addEventListener('versionchange', () => {
      result.close();
      opened = undefined;
    });
    resolve(result);
  });
  return promise;
}
