/**
 * Which storage an address means: the one place that knows them all.
 */
import { resolve } from 'node:path';
import { SqliteStorage } from '../sqlite/storage.ts';
import type { Storage } from '../storage.ts';

/** Opens the storage at an address that options.ts let through. Throws Refusal where it cannot. */
export async function openStorage(url: string, options: { create: boolean }): Promise<Storage> {
  return new SqliteStorage(fileOf(url), options);
}

/** The file of `sqlite:PATH`. It is made absolute, so that no name means anything special to SQLite. */
export function fileOf(url: string): string {
  return resolve(url.slice('sqlite:'.length));
}
