/**
 * The hosts of a server, of which one is the primary. If no connection to it is open, all hosts are asked, because
 * a failed primary that was started again accepts writes too: the highest timeline wins, which each promotion of a
 * standby raises by one.
 */
import { isIP } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { nameOf, resolveHost, type Address, type Host } from './address.ts';
import { Refusal } from '../../refusal.ts';
import { Connection, type OpenOptions } from './connection.ts';
import { sql } from '../../sql/statement.ts';
import { ConnectionError, isStatementError, NoHost, Unavailable, WrongServer } from '../errors.ts';

/** A host that takes longer is not asked, if another one accepts writes: it can be down. */
const surveyMs = 1_000;
/** How soon all hosts are asked again, if one had not answered or there was more than one primary. */
const defaultResurveyMs = 5_000;

type OriginRow = readonly [system: string, startedAt: string, timeline: number];

// Not `timeline_id` of pg_control_checkpoint(): a promoted standby shows the old one until its first checkpoint ends.
// Every role can call these functions.
const originSql = sql<OriginRow>`
  SELECT system_identifier::text, pg_postmaster_start_time()::text,
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
  FROM pg_control_system()`;

/** One address of a host. */
interface Place {
  host: Host;
  address: string;
}

/** A server that accepts writes. */
interface Primary {
  place: Place;
  connection: Connection;
  /** Undefined for other engines, which have no timelines. */
  origin: OriginRow | undefined;
}

interface Failure {
  host: Host;
  error: unknown;
}

export class Hosts {
  readonly #address: Address;
  readonly #onRival: (rival: string | undefined) => void;
  readonly #resurveyMs: number;
  /** Where all connections lead; undefined once all of them have ended. */
  #primary: Primary | undefined;
  #electing: Promise<Connection> | undefined;
  readonly #open = new Set<Primary>();
  /** By system, which a standby has in common with its primary. A lower timeline is that of a former primary. */
  readonly #timelines = new Map<string, number>();
  #rival: string | undefined;
  #nextSurvey: NodeJS.Timeout | undefined;

  /** `onRival` gets the name of another primary, and undefined when it is gone. */
  constructor(
    address: Address,
    onRival: (rival: string | undefined) => void = () => {},
    resurveyMs = defaultResurveyMs,
  ) {
    this.#address = address;
    this.#onRival = onRival;
    this.#resurveyMs = resurveyMs;
  }

  /** Another host that accepts writes, which nobody may use. */
  get rival(): string | undefined {
    return this.#rival;
  }

  /** Connects to the primary. With `verify`, to the first host that can be verified and accepts writes. */
  async open(options: OpenOptions): Promise<Connection> {
    if (this.#electing === undefined && this.#primary === undefined) {
      this.#electing = this.#elect(options).finally(() => (this.#electing = undefined));
      return this.#electing;
    }
    await this.#electing; // its connection is for whoever began it
    const elected = this.#primary;
    if (elected === undefined) return this.open(options);
    try {
      const primary = await this.#connect(elected.place, options);
      const isSame = primary.origin?.[1] === elected.origin?.[1];
      if (isSame && this.#primary === elected) return this.#track(primary);
      primary.connection.destroy();
    } catch (error) {
      if (this.#primary === elected) this.#primary = undefined;
      throw error;
    }
    // Another host was elected meanwhile, or can have been promoted before this one was started again.
    if (this.#primary === elected) this.#primary = undefined;
    return this.open(options);
  }

  async #elect(options: OpenOptions): Promise<Connection> {
    const isEach = options.verify !== undefined;
    return this.#adopt(await (isEach ? this.#firstOf(options) : this.#survey(options)));
  }

  /** A node of a cluster is verified by its identity, so the first one that is found is the right one. */
  async #firstOf(options: OpenOptions): Promise<Primary> {
    const failures: Failure[] = [];
    for (const host of this.#address.hosts) {
      const failed = (error: unknown) => void failures.push({ host, error });
      for (const address of (await resolveHost(host).catch(failed)) ?? []) {
        if (options.stop.aborted) throw new ConnectionError(options.stop.reason);
        const primary = await this.#connect({ host, address }, options)
          .then((found) => this.#refuseFormer(found))
          .catch(failed);
        if (primary !== undefined) return primary;
      }
    }
    throw failureOf(failures);
  }

  /** Asks all hosts at once, and returns the primary with the highest timeline. */
  async #survey(options: OpenOptions): Promise<Primary> {
    const over = new AbortController();
    const stop = AbortSignal.any([options.stop, over.signal]);
    const found: Primary[] = [];
    const failures: Failure[] = [];
    const { hosts } = this.#address;
    const asked = hosts.map(async (host) => {
      const failed = (error: unknown) => void failures.push({ host, error });
      const addresses = (await resolveHost(host).catch(failed)) ?? [];
      const asking = addresses.map(async (address) => {
        const primary = await this.#connect({ host, address }, { ...options, stop }).catch(failed);
        if (over.signal.aborted) primary?.connection.destroy();
        else if (primary !== undefined) found.push(primary);
      });
      await Promise.all(asking);
    });
    const isComplete = await Promise.race([
      Promise.all(asked).then(() => true),
      pause(surveyMs, false, { ref: false }),
    ]);
    if (found.length === 0) await Promise.all(asked);
    over.abort();
    // Servers of other systems are nodes of a cluster, of which any will do.
    const inOrder = found.toSorted(
      (a, b) => hosts.indexOf(a.place.host) - hosts.indexOf(b.place.host),
    );
    const first = inOrder.find((primary) => !this.#isFormer(primary)) ?? inOrder[0];
    if (first === undefined) throw failureOf(failures);
    const ofSystem = found.filter(({ origin }) => origin?.[0] === first.origin?.[0]);
    const best = ofSystem.reduce((a, b) => (timelineOf(b) > timelineOf(a) ? b : a), first);
    for (const { connection } of found) if (connection !== best.connection) connection.destroy();
    try {
      this.#refuseFormer(best);
    } catch (error) {
      throw failureOf([...failures, { host: best.place.host, error }]);
    }
    // The same server can have several addresses.
    const rival = ofSystem.find(({ origin }) => origin?.[1] !== best.origin?.[1]);
    if (rival !== undefined && timelineOf(rival) === timelineOf(best)) {
      best.connection.destroy();
      throw new WrongServer(
        `${nameOfPrimary(best)} and ${nameOfPrimary(rival)} both accept writes. Stop the one that failed.`,
      );
    }
    this.#setRival(rival && nameOfPrimary(rival));
    if (rival !== undefined || !isComplete) this.#surveyLater(options);
    return best;
  }

  async #connect(place: Place, options: OpenOptions): Promise<Primary> {
    const connection = await Connection.open(this.#address, place.host, place.address, options);
    try {
      return { place, connection, origin: await readOrigin(connection) };
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  #isFormer({ origin }: Primary): boolean {
    return origin !== undefined && origin[2] < (this.#timelines.get(origin[0]) ?? 0);
  }

  #refuseFormer(primary: Primary): Primary {
    if (!this.#isFormer(primary)) return primary;
    primary.connection.destroy();
    const known = this.#timelines.get(primary.origin?.[0] ?? '');
    throw new WrongServer(
      `the server is a former primary: its timeline is ${timelineOf(primary)}, and that of the last primary ${known}`,
    );
  }

  /** Connections to another host end, because it is not the primary any more. */
  #adopt(primary: Primary): Connection {
    const { place, origin } = this.#refuseFormer(primary); // a survey can have found another one meanwhile
    if (origin !== undefined) this.#timelines.set(origin[0], origin[2]);
    this.#primary = primary;
    for (const { place: other, connection } of this.#open) {
      if (other.host !== place.host || other.address !== place.address) connection.destroy();
    }
    return this.#track(primary);
  }

  #track(primary: Primary): Connection {
    this.#open.add(primary);
    void primary.connection.closed.then(() => this.#onClosed(primary));
    return primary.connection;
  }

  #onClosed(primary: Primary): void {
    this.#open.delete(primary);
    if (this.#open.size === 0) this.#primary = undefined;
  }

  #setRival(rival: string | undefined): void {
    if (rival === this.#rival) return;
    this.#rival = rival;
    this.#onRival(rival);
  }

  #surveyLater(options: OpenOptions): void {
    clearTimeout(this.#nextSurvey);
    this.#nextSurvey = setTimeout(() => void this.#resurvey(options), this.#resurveyMs).unref();
  }

  /** Finds out whether the rival is gone, and whether a later primary answers by now. */
  async #resurvey(options: OpenOptions): Promise<void> {
    if (options.stop.aborted) return;
    const primary = await this.#survey(options).catch(() => this.#surveyLater(options));
    if (primary === undefined) return;
    const known = this.#timelines.get(primary.origin?.[0] ?? '');
    if (known !== undefined && timelineOf(primary) > known) this.#adopt(primary);
    primary.connection.destroy();
  }
}

/** Undefined for engines without these functions, and for services that do not allow them. */
async function readOrigin(connection: Connection): Promise<OriginRow | undefined> {
  try {
    const [row] = await connection.query(originSql, []);
    return row;
  } catch (error) {
    if (isStatementError(error)) return undefined;
    throw error;
  }
}

function timelineOf({ origin }: Primary): number {
  return origin?.[2] ?? 0;
}

function nameOfPrimary({ place: { host, address } }: Primary): string {
  return isIP(host.host) === 0 ? `${nameOf(host)} (${address})` : nameOf(host);
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
  return error instanceof Refusal
    ? new Refusal(reasons, { kind: error.kind })
    : new NoHost(reasons, error);
}

function reasonOf(error: unknown): string {
  if (error instanceof ConnectionError) return reasonOf(error.cause);
  return error instanceof Error ? error.message : String(error);
}
