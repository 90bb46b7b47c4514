import type { TestContext } from 'node:test';
import type { Storage, WriteSettings } from '../../src/storage.ts';
import { changeContract } from '../change.contract.ts';
import { shareContract } from '../share.contract.ts';
import { userContract } from '../user.contract.ts';
import { storageContract, type StorageUnderTest } from '../storage.contract.ts';
import { testDatabase, type TestDatabase } from '../support/storages.ts';

let database: TestDatabase | undefined;

async function open(t: TestContext): Promise<Storage> {
  database = await testDatabase(t, 'PostgreSQL');
  return openAgain(t);
}

async function openAgain(t: TestContext, settings?: WriteSettings): Promise<Storage> {
  const storage = await database?.open(settings);
  if (storage === undefined) throw new Error('nothing was opened before');
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

async function run(sql: string): Promise<void> {
  await database?.run(sql);
}

const engine: StorageUnderTest = { name: 'PostgreSQL', open, openAgain, run };
storageContract(engine);
shareContract(engine);
userContract(engine);
changeContract(engine);
