import { forgetWrites } from './forget.ts';
import { logWrites } from './log.ts';
import { retentionWrites } from './retention.ts';
import { shareWrites } from './shares.ts';
import { tokenWrites } from './tokens.ts';
import { userWrites } from './users.ts';
import { webhookWrites } from './webhooks.ts';
import type { ResultOf, Write } from './write.ts';

/** All writes but those to plants, by name. */
const writes = {
  ...forgetWrites,
  ...logWrites,
  ...retentionWrites,
  ...shareWrites,
  ...tokenWrites,
  ...userWrites,
  ...webhookWrites,
};
export type Writes = typeof writes;

export function namedWrite<Name extends keyof Writes>(
  name: Name,
  ...args: Parameters<Writes[Name]>
): Write<ResultOf<Name>> {
  // The types have checked this combination, which the compiler cannot follow here.
  return (writes[name] as (...values: readonly unknown[]) => Write<ResultOf<Name>>)(...args);
}
