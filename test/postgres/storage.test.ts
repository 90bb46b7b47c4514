import type { TestContext } from 'node:test';
import type { Storage, WriteSettings } from '../../src/storage.ts';
import { changeContract } from '../change.contract.ts';
import { shareContract } from '../share.contract.ts';
import { userContract } from '../user.contract.ts';
import { storageContract, type StorageUnderTest } from '../storage.contract.ts';
import { shared } from '../support/shared.ts';
import { testDatabase } from '../support/storages.ts';

/** Emptied for each test, which costs less than creating and dropping one. */
const database = shared((t) => testDatabase(t, 'PostgreSQL'));
const emptySql = `
  DO $$
  DECLARE tables text := (
    SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables
    WHERE schemaname = 'plant_store' AND tablename NOT IN ('migrations', 'retention'));
  BEGIN
    IF tables IS NOT NULL THEN EXECUTE 'TRUNCATE ' || tables; END IF;
  END $$`;

async function open(t: TestContext): Promise<Storage> {
  await database().run(emptySql);
  return openAgain(t);
}

async function openAgain(t: TestContext, settings?: WriteSettings): Promise<Storage> {
  const storage = await database().open(settings);
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

const run = (sql: string) => database().run(sql);
const engine: StorageUnderTest = { name: 'PostgreSQL', open, openAgain, run };
storageContract(engine);
shareContract(engine);
userContract(engine);
changeContract(engine);
