import type { IdentityStorage } from './identity-storage.ts';
import type { PlantStorage } from './plant-storage.ts';

/**
 * Where plants and tokens are kept: what the service promises rests on what stands here, and
 * `test/storage.contract.ts` holds every storage to it.
 *
 * Durability. A write's promise settles only after the change is on disk. Every read that starts
 * after that sees it; in another process, every read of a caller that was identified (identify) after
 * that. A request begins with identifying its caller, so it sees all that was acknowledged before it:
 * `identify` asks whether others have written (`Freshness.refresh` of each engine).
 *
 * Isolation. Every method that takes a caller stays inside the caller's store and inside what the
 * caller reaches (access.ts). Whether the caller's token carries the scope is asked before, not here.
 *
 * Input. Callers pass only what the schemas of plant.ts accept. Text comes back code point for
 * code point.
 *
 * Errors. A method rejects with a Problem, which http/problems.ts makes an answer of and cli/reason.ts a
 * message. Anything else is a defect, answered as `internal-error`:
 *   `storage-unavailable`  the storage cannot answer now, and nothing was changed
 *   `overloaded`           too many reads or writes are in progress, and nothing was changed
 *   `storage-full`         no room for the change, and nothing was changed
 *   `outcome-unknown`      the write may or may not have happened
 * The methods name what else they reject with. No method waits without a bound.
 *
 * A full disk is `storage-full`. A failed sync is `outcome-unknown`. Then an SQLite storage takes no more writes,
 * and the service ends (`isFailedSync`). A PostgreSQL server that cannot sync ends the connection, and the writer
 * asks for the outcome when the server is back.
 *
 * Opening a storage throws Refusal (refusal.ts), to which cli/advice.ts adds what to type.
 *
 * Disposal waits for what is under way and lets everything go; nothing may be called afterwards.
 */
export interface Storage extends PlantStorage, IdentityStorage, AsyncDisposable {
  /** Resolves where the storage can answer. */
  check(): Promise<void>;
}
