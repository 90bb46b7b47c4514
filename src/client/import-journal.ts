/**
 * What an import records, so that it can continue after an interruption.
 */

/**
 * What was done for a row:
 * - `id`: the request with this id may have been sent; `added` is true after it succeeded
 * - `after`: a request without an id may have been sent, when this was the largest visible id
 */
export type JournalEntry = { id: number; added: boolean } | { after: number };

/** A journal belongs to one user of one store. */
export interface ImportJournal {
  /** All entries by key. A key contains the content of a row. */
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** Adds or replaces an entry. Resolves when it would survive the end of the process. */
  write(key: string, entry: JournalEntry): Promise<void>;
}

/** A journal that ends with the process. */
export function memoryJournal(): ImportJournal {
  const entries = new Map<string, JournalEntry>();
  return { entries, write: async (key, entry) => void entries.set(key, entry) };
}
