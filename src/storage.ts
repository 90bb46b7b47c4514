import type { Caller, Grant, Role, Scope } from './access.ts';
import type { NewPlant, Plant, PlantField } from './plant.ts';

/**
 * Where plants and tokens are kept: what the service promises rests on what stands here, and
 * `test/storage.contract.ts` holds every storage to it.
 *
 * Durability. A write's promise settles only after the change is on disk. Every read that starts
 * after that sees it; in another process, every read of a caller that was found (findGrant) after
 * that. A request begins with finding its caller, so it sees all that was acknowledged before it.
 *
 * Isolation. Every method that takes a caller stays inside the caller's store and inside what the
 * caller reaches (access.ts): a plant out of reach is answered like one that does not exist.
 * Whether the caller's token carries the scope is asked before, not here.
 *
 * Input. Callers pass only what the schemas of plant.ts accept. Text comes back code point for
 * code point.
 *
 * Errors. A method rejects with a Problem; anything else is a defect:
 *   `storage-unavailable`  the storage cannot answer now, and nothing was changed
 *   `overloaded`           too many writes are under way already, and nothing was changed
 *   `storage-full`         no room for the change, and nothing was changed
 *   `outcome-unknown`      the write may or may not have happened
 * The methods name what else they reject with. No method waits without a bound.
 *
 * Disposal waits for what is under way and lets everything go; nothing may be called afterwards.
 */
export interface Storage extends AsyncDisposable {
  /**
   * Adds a plant that the caller owns. Without an id it gets the number after the largest that the
   * store has ever held.
   *
   * Rejects with `id-taken` where the store holds the id, whoever owns it, and with `ids-exhausted`
   * where there is no number left to assign. Nothing has changed then.
   */
  createPlant(caller: Caller, plant: NewPlant): Promise<Plant>;

  /** The plant, or undefined where the caller reaches none with this id. */
  findPlant(caller: Caller, id: number): Promise<Plant | undefined>;

  /**
   * The first `limit` plants with an id above `after`, in ascending order of id; only those whose
   * tag is exactly `tag` where one is given. Costs the same at any depth and size of the store, but for
   * a tag: then it may walk over all that the caller reaches, in steps between which others have a turn.
   */
  listPlants(caller: Caller, query: PlantQuery): Promise<PlantPage>;

  /** True where the plant was there for this caller and is now gone. */
  deletePlant(caller: Caller, id: number): Promise<boolean>;

  /** Adds a token, and with it its store and its user where they are new. */
  createToken(token: NewToken): Promise<void>;

  /** Tokens that can be looked up at a time without delaying other requests. */
  readonly lookupsMax: number;

  /** What the token with this hash stands for, also when it has ended. */
  findGrant(tokenHash: Uint8Array): Promise<Grant | undefined>;

  /** Tokens in ascending order of id, of one store or of all. */
  listTokens(query: TokenQuery): Promise<TokenRecord[]>;

  /**
   * Ends a token at once in this process and within a second in all. Resolves to the token as it is
   * now, or to undefined where there is none; one that was revoked before keeps its time.
   */
  revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined>;

  /** Resolves where the storage can answer. */
  check(): Promise<void>;
}

export interface PlantQuery {
  after: number;
  /** The largest id that counts; no bound where it is undefined. */
  upTo?: number | undefined;
  limit: number;
  tag?: string | undefined;
  /** Which fields of a plant, in the order that they are written in; at least one, none twice. */
  fields: readonly PlantField[];
  /** True once nobody waits for the page any more: a walk ends there. */
  isGone?: (() => boolean) | undefined;
}

/**
 * A page is text and not plants: every engine can write the JSON itself, and a list of any length
 * then costs one string a page instead of objects for each plant.
 */
export interface PlantPage {
  /** The plants as JSON.stringify would write them, with commas between and nothing around. */
  json: string;
  /**
   * Where `limit` ended the page and others of the query follow: the id of its last plant, after which
   * the next page begins. Undefined where the list ends.
   */
  next: number | undefined;
}

/** Times are milliseconds since the Unix epoch. */
export interface NewToken {
  hash: Uint8Array;
  store: string;
  user: string;
  /** The user's role in the store from now on; undefined leaves it, and is `member` for a new user. */
  role?: Role | undefined;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs?: number | undefined;
}

export interface TokenQuery {
  store?: string | undefined;
  /** Only ids above this one. */
  after?: string | undefined;
  limit: number;
}

export interface TokenRecord {
  id: string;
  store: string;
  user: string;
  role: Role;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | undefined;
  revokedAtMs: number | undefined;
}
