/**
 * How much a write slows the next read of a cached first page, without HTTP. After each write, by the owner,
 * another owner or in another store, it identifies the caller and reads the page once.
 *
 *   node bench/cached-page.ts
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { defaultScopes, type Credential } from '../src/access.ts';
import { SqliteStorage } from '../src/sqlite/storage.ts';
import { credentialOf } from '../src/token.ts';
import { medianOf, formatNumber, table } from './figures.ts';
import { temporaryFolder } from './workspace.ts';

const rounds = 2_000;
const plants = 100; // the longest page that is cached

const folder = mkdtempSync(join(temporaryFolder(), 'cached-page-'));
try {
  await using storage = new SqliteStorage(join(folder, 'plants.db'), { create: true });
  const alice = await user(storage, 'main', 'alice');
  for (let plant = 0; plant < plants; plant++) {
    await storage.createPlant(alice.caller, { name: `Monstera ${plant}`, tag: 'indoor' });
  }
  const others = {
    nobody: undefined,
    'another store': (await user(storage, 'elsewhere', 'bob')).caller,
    'another owner of the store': (await user(storage, 'main', 'carol')).caller,
    'the owner': alice.caller,
  };
  const times = new Map(Object.keys(others).map((name) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, writer] of Object.entries(others)) {
      // Every case writes once, so that the processor is equally warm. For 'nobody', an extra read then
      // refreshes the cache.
      await storage.createPlant(writer ?? others['another store'], { name: 'new' });
      if (writer === undefined) await request(storage, alice.credential);
      const startedMs = performance.now();
      await request(storage, alice.credential);
      times.get(name)?.push(performance.now() - startedMs);
    }
  }
  const quietMs = medianOf(times.get('nobody') ?? [], (ms) => ms);
  const rows = [...times].map(([name, all]) => {
    const ms = medianOf(all, (one) => one);
    return [name, formatNumber(ms * 1_000), (ms / quietMs).toFixed(2)];
  });
  console.log(table(['Write since the last read by', 'µs', 'Ratio'], rows));
} finally {
  rmSync(folder, { recursive: true });
}

async function request(storage: SqliteStorage, credential: Credential): Promise<void> {
  const grant = await storage.identify(credential);
  if (grant === undefined) throw new Error('the token is unknown');
  await storage.listPlants(grant.caller, { after: 0, limit: plants, fields: ['name', 'tag'] });
}

async function user(storage: SqliteStorage, store: string, name: string) {
  const named = { store, user: name, scopes: defaultScopes };
  const { token } = await storage.createToken({ ...named, label: '', createdAtMs: 0 });
  const credential = credentialOf(token);
  const caller = (await storage.identify(credential))?.caller;
  if (caller === undefined) throw new Error('the token is unknown');
  return { credential, caller };
}
