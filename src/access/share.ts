import { shareAccesses, type ShareAccess as Access } from './access.ts';
import { Type } from '../shared/typebox.ts';

/** What a share allows. Its description is its rule, as in plant.ts. */
export const ShareAccess = Type.Unsafe<Access>({
  type: 'string',
  enum: shareAccesses,
  description: 'read or write',
  meaning: '`read`: the user can list and get the plants. `write`: the user can also delete them.',
  examples: ['read'],
});
