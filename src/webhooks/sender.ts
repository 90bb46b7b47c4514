/**
 * Sends to the webhooks that are due. Any number of processes can do so: each stores that it sends before it does, which
 * fails if another one has stored something since it looked.
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { changeJson, readFeed } from '../log/feed.ts';
import { metrics } from '../metrics/metrics.ts';
import { isProblem, Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { afterAttempt, attemptTimeoutMs, idle, isDue, isSuccess, leaseMs } from './webhook.ts';
import { messageOf, type Post, type Webhook, type WebhookKey } from './webhook.ts';

/** How often to look for webhooks, and at least how long after the last time if this process has changed something. */
const intervalMs = 500;
const minIntervalMs = 50;
/** Maximum number of attempts at once: those of a hundred users whose receivers all hang, in 60 MB. */
const maxSending = 1_024;
/** How many of them begin in an interval to send a message again: they leave room, and connections to the storage. */
const maxFailing = 16;
/** What receivers can take (Standard Webhooks, "Payload size"). */
const maxChanges = 50;
const maxBodyBytes = 20_000;

export type Sender = ReturnType<typeof createSender>;

export function createSender({ webhooks, log: changes }: Storage, post: Post, log: Logger) {
  const inProgress = new Map<string, Promise<void>>();
  /** Webhooks whose last attempt has ended with an error of the service. It is logged once. */
  const broken = new Set<string>();
  let isWoken = false;
  let isUsed = false; // without any webhook, changes cost nothing
  let searchedTo = ''; // the webhooks take turns

  /** Sends one message. Then it is the turn of others. */
  async function send(key: WebhookKey): Promise<void> {
    const found = await webhooks.find(key);
    if (found === undefined || !isDue(found, Date.now())) return; // another process was first
    const leased = await webhooks.set(await withMessage(found));
    // Another process sends, or this one was paused for so long that another one soon will.
    if (leased?.message === undefined || Date.now() > leased.dueAtMs - 2 * attemptTimeoutMs) return;
    const after = afterAttempt(leased, await post(leased, leased.message), Date.now());
    await webhooks.set(after);
    const { id, store, user, retired: reason } = after;
    if (reason !== undefined) log.warn({ webhook: id, store, user, reason }, 'webhook retired');
  }

  /** The webhook with the message to send and a lease, or as far as there is none. */
  async function withMessage(webhook: Webhook): Promise<Webhook> {
    const reader = await webhooks.readerOf(webhook);
    const { epoch } = await changes.follow(reader, webhook.lastPosition);
    const reach = hash('sha256', JSON.stringify([epoch, reader.read]));
    const lease = { isSending: true, dueAtMs: Date.now() + leaseMs };
    if (webhook.message?.reach === reach) return { ...webhook, ...lease };
    try {
      for (let limit = maxChanges; ; limit >>= 1) {
        const page = await readFeed(changes, reader, webhook.cursor, limit);
        const { cursor } = page;
        const last = page.changes.at(-1);
        if (last === undefined) return { ...webhook, ...idle, cursor };
        const items = page.changes.map((change) => changeJson(change));
        const message = messageOf('plants.changed', last.atMs, `{"changes":[${items.join()}]}`);
        if (limit > 1 && Buffer.byteLength(message.body) > maxBodyBytes) continue;
        metrics.plant_store_webhook_delay_seconds =
          (Date.now() - (page.changes[0] ?? last).atMs) / 1_000;
        return { ...webhook, ...lease, message: { ...message, cursor, reach } };
      }
    } catch (error) {
      if (!isProblem(error, 'cursor-ended')) throw error;
      // Whoever gets this message lists all plants later than here, and misses nothing.
      const { cursor } = await readFeed(changes, reader, undefined, 1);
      const message = messageOf('plants.reset', Date.now(), JSON.stringify(error.members));
      return { ...webhook, ...lease, message: { ...message, cursor, reach } };
    }
  }

  function begin(key: WebhookKey): void {
    const name = key.join();
    if (!inProgress.has(name)) inProgress.set(name, sendOrLog(key, name));
    metrics.plant_store_webhooks_sending = inProgress.size;
  }

  async function sendOrLog(key: WebhookKey, name: string): Promise<void> {
    try {
      await send(key);
      isWoken = true; // for what has changed meanwhile
      broken.delete(name);
    } catch (error) {
      // What cannot be read stays so.
      if (!broken.has(name)) onError(error);
      broken.add(name);
    } finally {
      inProgress.delete(name);
      metrics.plant_store_webhooks_sending = inProgress.size;
    }
  }

  async function look(isRegular: boolean): Promise<void> {
    const free = maxSending - inProgress.size;
    if (free === 0) return;
    const found = await webhooks.changed(searchedTo, free);
    searchedTo = found.length > free ? (found[free - 1]?.[2] ?? '') : '';
    found.slice(0, free).forEach(begin);
    isUsed ||= found.length > 0;
    if (!isRegular) return;
    const failing = Math.min(maxFailing, maxSending - inProgress.size);
    (await webhooks.due(Date.now(), failing)).forEach(begin);
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
        await look(isRegular).catch(onError);
      }
      await Promise.all(inProgress.values());
    },

    /** Call it after a change. */
    wake(): void {
      isWoken = isUsed;
    },

    /** Sends a message without changes. If the receiver accepts it, what has failed continues at once. */
    async test(webhook: Webhook) {
      const answer = await post(webhook, messageOf('webhook.test', Date.now(), '{}'));
      const { store, user, id } = webhook;
      const found = isSuccess(answer) ? await webhooks.find([store, user, id]) : undefined;
      // What is being sent now keeps its lease.
      if (found?.failing !== undefined && !found.isSending) {
        await webhooks.set({ ...found, failing: undefined, retired: undefined, dueAtMs: 1 });
      }
      return answer;
    },
  };
}
