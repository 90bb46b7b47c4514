/**
 * Divides the event loop among requests by time. In each iteration, requests start until the slice of their group is
 * used up, and the others wait. So iterations stay short, whatever the requests cost: new connections are accepted and
 * answered soon.
 *
 * There are two groups: callers with a valid token, and strangers. In each group, keys take turns.
 */
import { RoundRobin } from '../../shared/round-robin.ts';
import { timeInSlices } from '../../shared/time-slices.ts';

/** The slice of a group in an iteration, so that strangers, such as health checks, wait for short ones only. */
const sliceMs = 0.8;
/** Of callers while no strangers come: a longer slice costs less, because an iteration has fixed costs. */
const sliceWithoutStrangersMs = 2;
/** Strangers are gone if none has sent a request for this number of iterations. */
const iterationsUntilGone = 200;
/** The weight of the past in the average cost of a request, which lets bursts pass. */
const decay = 0.9;
/** The resolution of the clock. */
const minMs = 0.001;

/** Starts a request. Returns false if its client has disconnected. */
export type Start = () => boolean;

export class RequestScheduler {
  readonly #known = new Group();
  readonly #strangers = new Group();
  #isMeasuring = false;
  /** The time of callers when the measured iteration began. */
  #beganMs = 0;
  #isStartingStrangers = false;
  /** The time that strangers have taken since the process started. */
  #strangersMs = 0;
  #iterationsUntilGone = 0;

  /** Starts a request now, unless the slice is used up or it is not the turn of `key`, a caller. */
  startKnown(key: string, start: Start): void {
    if (!this.#known.canStartNow(key)) return this.#known.waiting.add(key, start);
    if (this.#isMeasuring) return this.#known.start(start);
    this.#beganMs = this.#msOfKnown();
    this.#known.start(start);
    this.#measure();
  }

  /** Starts a request of a client without a valid token, after the other requests that have arrived. */
  startStranger(key: string, start: Start): void {
    this.#iterationsUntilGone = iterationsUntilGone;
    this.#strangers.waiting.add(key, start);
    if (!this.#isStartingStrangers) this.#startStrangers();
  }

  /**
   * Callers also use the time of later callbacks, such as reads. So they are charged for all that nobody else used, until
   * the end of the iteration: call it after the first request has started, and has scheduled its read.
   */
  #measure(): void {
    this.#isMeasuring = true;
    setImmediate(this.#endSlice);
  }

  readonly #endSlice = (): void => {
    const areGone = this.#iterationsUntilGone === 0;
    if (!areGone) this.#iterationsUntilGone--;
    const nowMs = this.#msOfKnown();
    this.#known.beginSlice(areGone ? sliceWithoutStrangersMs : sliceMs, nowMs - this.#beganMs);
    this.#isMeasuring = false;
    if (this.#known.waiting.size === 0) return;
    this.#beganMs = nowMs;
    this.#known.startWaiting();
    this.#measure();
  };

  #msOfKnown(): number {
    return performance.now() - timeInSlices() - this.#strangersMs;
  }

  /** Between the two callbacks, Node runs the microtasks in which the requests get their responses. */
  #startStrangers(): void {
    this.#isStartingStrangers = true;
    let startedMs = 0;
    setImmediate(() => {
      startedMs = performance.now();
      this.#strangers.startWaiting();
    });
    setImmediate(() => {
      const tookMs = performance.now() - startedMs;
      this.#strangersMs += tookMs;
      this.#isStartingStrangers = false;
      this.#strangers.beginSlice(sliceMs, tookMs);
      if (this.#strangers.waiting.size > 0) this.#startStrangers();
    });
  }
}

class Group {
  readonly waiting = new RoundRobin<Start>();
  /** How many requests have started in this iteration, and how many of those that wait can. */
  #started = 0;
  #max = 1;
  /** Of the previous iterations, with less weight for older ones. */
  #pastStarted = 0;
  #pastMs = 0;

  /** Keys that have nothing waiting get as much time again as the others. */
  canStartNow(key: string): boolean {
    return this.#started < 2 * this.#max && !this.waiting.has(key);
  }

  start(start: Start): void {
    if (start()) this.#started++;
  }

  startWaiting(): void {
    while (this.#started < this.#max) {
      const next = this.waiting.take();
      if (next === undefined) return;
      this.start(next);
    }
  }

  /** Call it in each iteration, with the time that the group took. */
  beginSlice(slice: number, tookMs: number): void {
    this.#pastStarted = this.#pastStarted * decay + this.#started;
    this.#pastMs = this.#pastMs * decay + Math.max(tookMs, minMs);
    this.#max = Math.max(1, Math.floor((slice * this.#pastStarted) / this.#pastMs));
    this.#started = 0;
  }
}
