/**
 * Sends to the webhooks that are due. Any number of processes can do so: each stores that it sends before it does, which
 * fails if another one has stored something since it looked.
 */
import { hash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readFeed, type FeedChange } from '../log/feed.ts';
import { textsOf } from '../plants/fields.ts';
import { isProblem, Problem } from '../problem.ts';
import { formatTimestamp } from '../shared/timestamp.ts';
import type { Storage } from '../storage.ts';
import type { Post } from './networks.ts';
import { afterAttempt, attemptTimeoutMs, bodyOf, headersOf, isDue, isSuccess } from './webhook.ts';
import { leaseMs, type Answer, type Webhook, type WebhookKey } from './webhook.ts';

/** How often to look for webhooks, and at least how long after the last time if this process has changed something. */
const intervalMs = 500;
const minIntervalMs = 50;
/** Maximum number of attempts at once. */
const maxSending = 256;
/** How many of them begin in an interval to send a message again: they leave room, and connections to the storage. */
const maxFailing = 16;
/** What receivers can take (Standard Webhooks, "Payload size"). */
const maxChanges = 50;
const maxBodyBytes = 20_000;

export type Sender = ReturnType<typeof createSender>;

export function createSender({ webhooks, log: changes }: Storage, post: Post, log: Logger) {
  const inProgress = new Map<string, Promise<unknown>>();
  let isWoken = false;
  let isUsed = false; // without any webhook, changes cost nothing

  /** Sends one message. Then the webhooks that have waited for longer are first. */
  async function send(key: WebhookKey): Promise<void> {
    const found = await webhooks.find(key);
    if (found === undefined || !isDue(found, Date.now())) return; // another process was first
    const webhook = await withMessage(found);
    const { message } = webhook;
    if (message === undefined)
      return void (await webhooks.set({ ...webhook, dueAtMs: Date.now() }));
    const leased = await lease(webhook);
    if (leased === undefined) return; // another process sends
    // It follows from the message, so each attempt has the same.
    const messageId = hash('sha256', `${webhook.id} ${message.cursor} ${message.body}`);
    const answer = await attempt(leased, messageId.slice(0, 32), message.body);
    const after = afterAttempt(leased, answer, Date.now());
    await webhooks.set(after);
    const { id, store, user, retired: reason } = after;
    if (reason !== undefined) log.warn({ webhook: id, store, user, reason }, 'webhook retired');
  }

  /** The webhook with the message to send, or as far as there is none. */
  async function withMessage(webhook: Webhook): Promise<Webhook> {
    const reader = await webhooks.readerOf(webhook);
    if (reader === undefined) return { ...webhook, message: undefined };
    const { epoch } = await changes.follow(reader, webhook.lastPosition);
    const reach = hash('sha256', JSON.stringify([epoch, reader.read]));
    if (webhook.message?.reach === reach) return webhook;
    try {
      for (let limit = maxChanges; ; limit >>= 1) {
        const page = await readFeed(changes, reader, webhook.cursor, limit);
        const { cursor } = page;
        const last = page.changes.at(-1);
        if (last === undefined) return { ...webhook, cursor, message: undefined };
        const body = bodyOf('plants.changed', last.atMs, { changes: page.changes.map(itemOf) });
        if (limit > 1 && Buffer.byteLength(body) > maxBodyBytes) continue;
        return { ...webhook, message: { body, cursor, reach } };
      }
    } catch (error) {
      if (!isProblem(error, 'cursor-ended')) throw error;
      // Whoever gets this message lists all plants later than here, and misses nothing.
      const { cursor } = await readFeed(changes, reader, undefined, 1);
      const body = bodyOf('plants.reset', Date.now(), error.members ?? {});
      return { ...webhook, message: { body, cursor, reach } };
    }
  }

  /** Undefined if another process has the webhook, or this one was paused for so long that another one soon will. */
  async function lease(webhook: Webhook): Promise<Webhook | undefined> {
    const dueAtMs = Date.now() + leaseMs;
    const leased = await webhooks.set({ ...webhook, isSending: true, dueAtMs });
    return Date.now() < dueAtMs - 2 * attemptTimeoutMs ? leased : undefined;
  }

  function attempt({ url, secret }: Webhook, id: string, body: string): Promise<Answer> {
    return post(url, headersOf(`msg_${id}`, body, secret), body);
  }

  async function begin(hasMessage: boolean, max: number): Promise<void> {
    const free = Math.min(max, maxSending - inProgress.size);
    if (free === 0) return;
    const due = await webhooks.due(Date.now(), hasMessage, free);
    isUsed ||= due.length > 0;
    for (const key of due) {
      const name = key.join();
      if (inProgress.has(name)) continue;
      const sending = send(key)
        .then(() => void (isWoken = true), onError) // for what has changed meanwhile
        .finally(() => inProgress.delete(name));
      inProgress.set(name, sending);
    }
  }

  function onError(err: unknown): void {
    // Requests report what else the storage can reject with.
    if (err instanceof Problem && err.kind !== 'internal-error') return;
    log.error({ err }, 'sending to webhooks failed');
  }

  return {
    /** Until the signal is aborted. Then it waits for the attempts in progress. */
    async run(signal: AbortSignal): Promise<void> {
      for (let waitedMs = intervalMs; !signal.aborted; waitedMs += minIntervalMs) {
        await pause(minIntervalMs, undefined, { signal }).catch(() => {});
        const isRegular = waitedMs >= intervalMs;
        if (!isRegular && !isWoken) continue;
        isWoken = false;
        if (isRegular) waitedMs = 0;
        await begin(false, maxSending).catch(onError);
        if (isRegular) await begin(true, maxFailing).catch(onError);
      }
      await Promise.all(inProgress.values());
    },

    /** Call it after a change. */
    wake(): void {
      isWoken = isUsed;
    },

    /** Sends a message without changes. If the receiver accepts it, what has failed continues at once. */
    async test(webhook: Webhook): Promise<Answer> {
      const nowMs = Date.now();
      const { isSending, dueAtMs: until } = webhook;
      const isLeased = isSending && until > nowMs && until <= nowMs + 2 * leaseMs;
      const leased = isLeased ? undefined : await lease(webhook);
      if (leased === undefined) throw new Problem('overloaded', busy);
      const answer = await attempt(leased, randomUUID(), bodyOf('webhook.test', nowMs, {}));
      const { dueAtMs, attempts, failingSinceMs, retired } = isSuccess(answer) ? fresh : webhook;
      const after = { dueAtMs, attempts, failingSinceMs, retired, isSending: false };
      await webhooks.set({ ...leased, ...after });
      return answer;
    },
  };
}

/** As in a response of `GET /changes`. */
function itemOf({ id, event, atMs, user, plant }: FeedChange) {
  return { id, event, at: formatTimestamp(atMs), user, plant: plant && textsOf(plant) };
}

const busy = 'A message is being sent to this webhook. Try again in a few seconds.';
const fresh = { dueAtMs: 0, attempts: 0, failingSinceMs: undefined, retired: undefined };
