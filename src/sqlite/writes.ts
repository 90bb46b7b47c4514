/**
 * The writes of the storage as messages: what travels to the thread that does them, and what comes
 * back. Everything here is plain data, because it is copied from one thread to the other.
 */
import type { Identity } from '../access.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { ProblemKind } from '../problem.ts';
import type { NewToken, TokenRecord } from '../storage.ts';
import type { Tables } from './connection.ts';
import type { FileId } from './open-file.ts';

export type Write =
  | { kind: 'createPlant'; caller: Identity; plant: NewPlant }
  | { kind: 'deletePlant'; caller: Identity; id: number }
  | { kind: 'createToken'; token: NewToken }
  | { kind: 'revokeToken'; id: string; revokedAtMs: number };

/** Writes that travel together. `sinceMs` is when the first of them came, by nowMs(). */
export interface Parcel {
  sinceMs: number;
  writes: readonly Write[];
}

/** What the thread is started with. */
export interface ThreadData {
  path: string;
  /** The file that the others of this process have open. */
  fileId: FileId;
  /** One BigInt64: how many writes it has taken, for the case that it dies. */
  taken: SharedArrayBuffer;
}

/** A clock that all threads share and nobody sets: performance.now() has a zero of its own in each. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

/** What a write of a kind resolves to. */
export interface WriteResults {
  createPlant: Plant;
  deletePlant: boolean;
  createToken: void;
  revokeToken: TokenRecord | undefined;
}

export type Outcome =
  { value: unknown } | { problem: { kind: ProblemKind; detail: string; cause?: unknown } };

/** What the thread sends once the disk has failed a commit, before the outcomes of that commit. */
export interface DiskFailed {
  diskFailure: unknown;
}

/** Does the write inside the transaction that is open. A refusal has changed nothing. */
export function apply({ plants, tokens }: Tables, write: Write): WriteResults[Write['kind']] {
  switch (write.kind) {
    case 'createPlant':
      return plants.create(write.caller, write.plant);
    case 'deletePlant':
      return plants.delete(write.caller, write.id);
    case 'createToken':
      return tokens.create(write.token);
    case 'revokeToken':
      return tokens.revoke(write.id, write.revokedAtMs);
  }
}
