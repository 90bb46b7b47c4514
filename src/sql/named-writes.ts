import { logWrites } from './log.ts';
import { retentionWrites } from './retention.ts';
import { shareWrites } from './shares.ts';
import { tokenWrites } from './tokens.ts';
import { userWrites } from './users.ts';

/** All writes but those to plants, by name. */
export const writes = {
  ...logWrites,
  ...retentionWrites,
  ...shareWrites,
  ...tokenWrites,
  ...userWrites,
};
export type Writes = typeof writes;
