/** An operation is impossible. The message describes why, and what to do about it. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
}

/** There is no such database, or nothing of Plant Store in it. */
export class NoDatabase extends Refusal {}

/** The input is malformed; nothing was attempted. */
export class UsageError extends Refusal {
  override readonly name = 'UsageError';
}

/** The disk failed, or the database file is lost. A person has to check it before anything is written again. */
export class StorageFailure extends Refusal {
  override readonly name = 'StorageFailure';
}
