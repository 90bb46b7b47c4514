/**
 * The hosts of a server, of which one is the primary. If no connection to it is open, all hosts are asked, because
 * a failed primary that was started again accepts writes too: the highest timeline wins, which each promotion of a
 * standby raises by one.
 */
import { isIP } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { nameOf, placesOf, type Address, type Host, type Place } from './address.ts';
import { Refusal } from '../../refusal.ts';
import { Connection } from './connection.ts';
import { sql } from '../../sql/statement.ts';
import { ConnectionError, isStatementError, NoHost, Unavailable, WrongServer } from '../errors.ts';

/** A host that takes longer is not asked, if another one accepts writes: it can be down. */
const surveyMs = 1_000;
/** How soon all hosts are asked again, if one had not answered or there was more than one primary. */
const defaultResurveyMs = 5_000;

/** The system is what a standby has in common with its primary. The start distinguishes servers, whatever their names. */
type Origin = readonly [system: string, start: string, timeline: number];

// Not `timeline_id` of pg_control_checkpoint(): a promoted standby shows the old one until its first checkpoint ends.
// Every role can call these functions.
const originSql = sql<Origin>`
  SELECT system_identifier::text, pg_postmaster_start_time()::text,
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
  FROM pg_control_system()`;

/** A server that accepts writes. */
interface Primary {
  connection: Connection;
  place: Place;
  origin: Origin;
}

interface Failure {
  host: Host;
  error: unknown;
}

export interface HostsOptions {
  /** Ends all attempts. */
  stop: AbortSignal;
  /** Rejects if the connection leads to another server than expected. */
  verify?: ((connection: Connection) => Promise<void>) | undefined;
  /** Gets the name of another primary, and undefined when it is gone. */
  onRival?: ((rival: string | undefined) => void) | undefined;
  resurveyMs?: number;
}

export class Hosts {
  readonly #address: Address;
  readonly #options: HostsOptions;
  /** Where all connections lead; undefined once all of them have ended. */
  #primary: Promise<Primary> | undefined;
  readonly #open = new Map<Connection, Primary>();
  /** By system. A lower timeline is that of a former primary. */
  readonly #timelines = new Map<string, number>();
  #rival: string | undefined;
  #nextSurvey: NodeJS.Timeout | undefined;

  constructor(address: Address, options: HostsOptions) {
    this.#address = address;
    this.#options = options;
  }

  /** Another host that accepts writes, which nobody may use. */
  get rival(): string | undefined {
    return this.#rival;
  }

  /** All open connections. */
  get connections(): readonly Connection[] {
    return [...this.#open.keys()];
  }

  /** Connects to the primary. */
  async open(): Promise<Connection> {
    const elected = this.#primary;
    if (elected === undefined) return this.#elect();
    try {
      const { place, origin } = await elected;
      const current = await this.#connect(place, this.#options.stop);
      const isSame = current.origin[1] === origin[1] && this.#primary === elected;
      if (isSame && !this.#isFormer(current)) return this.#track(current);
      current.connection.destroy();
    } catch (error) {
      this.#forget(elected);
      throw error;
    }
    // Another host was elected or found meanwhile, or can have been promoted before this one was started again.
    this.#forget(elected);
    return this.open();
  }

  /** Uses the connection of the survey, because an address can lead to another server each time. */
  async #elect(): Promise<Connection> {
    const elected = this.#survey();
    this.#primary = elected;
    try {
      return this.#track(await elected);
    } catch (error) {
      this.#forget(elected);
      throw error;
    }
  }

  #track(primary: Primary): Connection {
    const { connection } = primary;
    this.#open.set(connection, primary);
    void connection.closed.then(() => this.#onClosed(connection));
    if (this.#options.stop.aborted) connection.destroy();
    return connection;
  }

  /**
   * Asks all hosts at once for the primary with the highest timeline, and closes connections to former ones. Servers of
   * other systems keep theirs, because it is not known which of them is the later primary.
   */
  async #survey(): Promise<Primary> {
    const [found, failures, isComplete] = await this.#askAll();
    let best: Primary | undefined;
    try {
      return (best = this.#bestOf(found, failures, isComplete));
    } finally {
      for (const { connection } of found) {
        if (connection !== best?.connection) void connection.close();
      }
    }
  }

  #bestOf(found: readonly Primary[], failures: readonly Failure[], isComplete: boolean): Primary {
    // Servers of other systems are nodes of a cluster, of which any will do.
    const first = found.find((primary) => !this.#isFormer(primary)) ?? found[0];
    const [best, ...others] = found
      .filter(({ origin }) => origin[0] === first?.origin[0])
      .toSorted((a, b) => b.origin[2] - a.origin[2]);
    if (best === undefined) throw failureOf(failures);
    const [system, start, timeline] = best.origin;
    if (this.#isFormer(best)) {
      const error = new WrongServer(
        `the server is a former primary: its timeline is ${timeline}, and that of the last primary ${this.#timelines.get(system)}`,
      );
      throw failureOf([...failures, { host: best.place, error }]);
    }
    // The same server can have several addresses.
    const rival = others.find(({ origin }) => origin[1] !== start);
    if (rival?.origin[2] === timeline) {
      throw new WrongServer(
        `${nameOfPlace(best)} and ${nameOfPlace(rival)} both accept writes. Stop the one that failed.`,
      );
    }
    this.#timelines.set(system, timeline);
    for (const [connection, { origin }] of this.#open) {
      if (origin[0] === system && origin[1] !== start) connection.destroy();
    }
    this.#setRival(rival && nameOfPlace(rival));
    if (rival !== undefined || !isComplete) this.#surveyLater();
    return best;
  }

  /** Returns the servers that accept writes, in the order of the hosts, and why others do not. */
  async #askAll(): Promise<[found: Primary[], failures: Failure[], isComplete: boolean]> {
    const { hosts } = this.#address;
    const { stop: closing, verify } = this.#options;
    const over = new AbortController();
    const stop = AbortSignal.any([closing, over.signal]);
    const firstFound = Promise.withResolvers<true>();
    const found: Primary[][] = hosts.map(() => []);
    const failures: Failure[] = [];
    const asked = hosts.map(async (host, at) => {
      const failed = (error: unknown) => void failures.push({ host, error });
      const places = (await placesOf(host).catch(failed)) ?? [];
      const asking = places.map(async (place) => {
        const primary = await this.#connect(place, stop);
        if (over.signal.aborted) return primary.connection.destroy();
        found[at]?.push(primary);
        if (!this.#isFormer(primary)) firstFound.resolve(true);
      });
      await Promise.all(asking.map((each) => each.catch(failed)));
    });
    const all = Promise.all(asked).then(() => true);
    // What is verified is the right one, which a host that is down must not delay.
    const isEnough = verify ? firstFound.promise : pause(surveyMs, false, { ref: false });
    const isComplete = await Promise.race([all, isEnough]);
    if (found.flat().length === 0) await all;
    over.abort();
    return [found.flat(), failures, isComplete];
  }

  #connect(place: Place, stop: AbortSignal): Promise<Primary> {
    return Connection.open(this.#address, place, stop, async (connection) => {
      await this.#options.verify?.(connection);
      return { connection, place, origin: await readOrigin(connection, place) };
    });
  }

  #isFormer({ origin: [system, , timeline] }: Primary): boolean {
    return timeline < (this.#timelines.get(system) ?? 0);
  }

  #forget(elected: Promise<Primary>): void {
    if (this.#primary === elected) this.#primary = undefined;
  }

  #onClosed(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#open.size === 0) this.#primary = undefined;
  }

  #setRival(rival: string | undefined): void {
    if (rival === this.#rival) return;
    this.#rival = rival;
    this.#options.onRival?.(rival);
  }

  /** Finds out whether the rival is gone, and whether a later primary answers by now. */
  #surveyLater(): void {
    const { stop, resurveyMs = defaultResurveyMs } = this.#options;
    clearTimeout(this.#nextSurvey);
    this.#nextSurvey = setTimeout(() => {
      if (stop.aborted) return;
      this.#survey().then(
        ({ connection }) => void connection.close(),
        () => this.#surveyLater(),
      );
    }, resurveyMs).unref();
  }
}

/** Other engines, and services that do not allow these functions, have no timelines: each place is a server of its own. */
async function readOrigin(connection: Connection, place: Place): Promise<Origin> {
  const here = nameOfPlace({ place });
  try {
    const [row] = await connection.query(originSql, []);
    return row ?? [here, here, 0];
  } catch (error) {
    if (isStatementError(error)) return [here, here, 0];
    throw error;
  }
}

function nameOfPlace({ place }: Pick<Primary, 'place'>): string {
  return isIP(place.host) === 0 ? `${nameOf(place)} (${place.ip})` : nameOf(place);
}

/** Why no host can be used. It is classified by the reason of the host that can be the primary. */
function failureOf(failures: readonly Failure[]): unknown {
  const rank = (error: unknown) =>
    error instanceof WrongServer ? 2 : error instanceof Unavailable ? 1 : 0;
  const [first] = failures.toSorted((a, b) => rank(a.error) - rank(b.error));
  if (first === undefined || failures.length === 1) return first?.error;
  const reasons = failures
    .map(({ host, error }) => `${nameOf(host)}: ${reasonOf(error)}`)
    .join('; ');
  const { error } = first;
  return error instanceof Refusal ? new Refusal(reasons) : new NoHost(reasons, error);
}

function reasonOf(error: unknown): string {
  if (error instanceof ConnectionError) return reasonOf(error.cause);
  return error instanceof Error ? error.message : String(error);
}
