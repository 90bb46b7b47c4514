import type { IdentityStorage } from './access/identity-storage.ts';
import type { ChangeLog } from './log/change-log.ts';
import type { Series } from './metrics/metrics.ts';
import type { PlantStorage } from './plants/plant-storage.ts';
import type { ShareStorage } from './access/share-storage.ts';
import type { Quotas } from './plants/quota.ts';
import type { UserStorage } from './access/user-storage.ts';
import type { WebhookStorage } from './webhooks/webhook.ts';

/**
 * Stores plants, tokens, shares and webhooks. The promises of the service depend on what is specified here, and
 * `test/storage.contract.ts` tests it on every storage.
 *
 * Durability. A write resolves only after the change is on disk. Every read that starts later in the same process sees
 * it. In another process, every read sees it whose caller was identified later, because `identify` checks whether
 * others have written (`refresh` of each engine). A request identifies its caller first, so it sees every change that
 * was acknowledged before it.
 *
 * Isolation. Every method that takes a caller stays within the caller's store and reach (access.ts). A write checks
 * both again in its own transaction (`Identified`), and rejects with `invalid-token` if the caller's token was revoked.
 * The scopes and the expiry of the token are checked before, not here. A write of an operator has no caller.
 *
 * Input. Callers pass only what the schemas of plant.ts accept. Text is returned code point for code point.
 *
 * Errors. A method rejects with a Problem, which http/response/problems.ts turns into a response and cli/errors.ts into a
 * message. Any other error is a defect, and the response is `internal-error`.
 *   `storage-unavailable`  the storage cannot respond now, and nothing was changed
 *   `overloaded`           too many reads or writes are in progress, and nothing was changed
 *   `storage-full`         no space for the change, and nothing was changed
 *   `outcome-unknown`      the write may or may not have happened
 * Each method documents its other errors. No method waits without a limit.
 *
 * A full disk is `storage-full`, and a failed sync is `outcome-unknown`. After a failed sync, an SQLite storage
 * accepts no more writes, and the service exits (`isFailedSync`). A PostgreSQL server closes the connection, and
 * the writer checks the outcome when the server is back.
 *
 * Opening a storage throws Refusal (refusal.ts), and NoDatabase if there is none.
 *
 * Disposal waits for what is in progress and releases all resources. Call nothing afterwards.
 */
export interface Storage extends AsyncDisposable {
  readonly plants: PlantStorage;
  readonly identity: IdentityStorage;
  readonly shares: ShareStorage;
  readonly users: UserStorage;
  readonly log: ChangeLog;
  readonly webhooks: WebhookStorage;

  /** Resolves if the storage can respond to reads. */
  check(): Promise<void>;

  /**
   * Commits a write to a store that changes nothing, or rejects as another write would. After a write that found no space,
   * `needsSpace` demands that there is some for a large plant.
   */
  checkWrites(store: number, needsSpace: boolean): Promise<void>;

  /** Whether another primary accepts writes, although requests do not reach it. */
  readonly hasRival?: boolean;

  /** What is the same in all processes, for metrics. */
  figures(): Promise<readonly Series[]>;

  /** Starts in the background what the first write would otherwise wait for. */
  warmUp?(): void;
}

/** What the writes of a process depend on, and its reads of the log. */
export interface WriteSettings {
  /** None by default. */
  quotas?: Quotas | undefined;
  /** How long the log keeps changes: 0 if there is no log, and undefined if this process shows all that are left. */
  keepChangesMs?: number | undefined;
}
