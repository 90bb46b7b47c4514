/**
 * Who is calling, on SQLite: whether what a token or a JWT grants has changed since it was read.
 */
import type { Caller, Credential, Grant, Identified } from '../../access/access.ts';
import { callerNow, findAgain, findGrant, grantOf } from '../../sql/grants.ts';
import type { Prepare } from '../driver.ts';
import type { Statements } from './statements.ts';

export type Grants = ReturnType<typeof openGrants>;

export function openGrants(prepare: Prepare, statements: Statements) {
  const countChanges = prepare<[count: number]>('SELECT count FROM grant_changes');

  /** The version of all grants; undefined if it can have changed since it was read. */
  let knownVersion: number | undefined;

  const currentVersion = () => (knownVersion ??= countChanges.get()?.[0] ?? 0);

  return {
    /** The known grant if it is current. Undefined if there is no such token, or if a JWT has no current grant. */
    current(credential: Credential, known?: Grant): Grant | undefined {
      if (known?.caller.identified[0] === currentVersion()) return known;
      if (credential.claims !== undefined) return undefined;
      const { store } = credential;
      return grantOf(store, credential, statements.all(...findGrant(store, credential)));
    },

    /**
     * For writes: undefined if no grant has changed since the caller was identified. Otherwise identifies them again, and
     * throws `invalid-token` if their token was revoked.
     */
    callerSince(store: number, by: Identified): Caller | undefined {
      if (by[0] === currentVersion()) return undefined;
      return callerNow(store, by, statements.all(...findAgain(store, by)));
    },

    /** Call it after each write that can change grants, of any connection, and after a rollback. */
    clearVersion(): void {
      knownVersion = undefined;
    },
  };
}
