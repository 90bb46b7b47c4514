/**
 * Webhooks: endpoints that get the changes a user can read as messages, after Standard Webhooks. One is a row, from which
 * any process can continue.
 */
import { createHmac } from 'node:crypto';
import type { Caller, Identity } from '../access/access.ts';
import type { Reader } from '../log/feed.ts';
import { formatTimestamp } from '../shared/timestamp.ts';

/** Maximum number of webhooks of a user. */
export const maxWebhooks = 10;
export const attemptTimeoutMs = 7_000;
/** Much longer than an attempt: the clocks of servers can differ by 10 seconds. */
export const leaseMs = 30_000;
const hourMs = 60 * 60 * 1_000;
const maxFailingMs = 72 * hourMs;
/** With fewer attempts in that time, the service was stopped, or a clock has jumped. */
const minAttempts = 30;
/** Such that there are enough attempts in that time. */
const maxPauseMs = 2 * hourMs;
/** The log must have what is not sent yet. */
export const minKeepChangesMs = 96 * hourMs;

/** It is stored before the first attempt, so that each attempt sends the same. */
export interface Message {
  id: string;
  body: string;
  /** Where to continue once it has arrived. */
  cursor: string;
  /** A hash of the database and of what the user could read. If it is another one now, the message is made again. */
  reach: string;
}

/** What is stored about a webhook. Times are in milliseconds since the Unix epoch. */
export interface WebhookState {
  url: string;
  /** In base64. */
  secret: string;
  /** Of the feed: the receiver has all that is before it. */
  cursor: string;
  message?: Message | undefined;
  /** When to send the message: after a pause, or if the process that sends has ended. 0 without a message. */
  dueAtMs: number;
  isSending: boolean;
  /** Since the last message has arrived. */
  failing?: { sinceMs: number; attempts: number } | undefined;
  /** The status of the last response, or why there was none. */
  result?: string | undefined;
  /** Why nothing is sent any more. */
  retired?: string | undefined;
}

/** The state without a message. */
export const idle = { message: undefined, dueAtMs: 0, isSending: false, failing: undefined };

export interface Webhook extends Identity, WebhookState {
  id: string;
  /** Another one after each `set`. 0 before the first. */
  version: number;
  userName: string;
  /** The position of the last change in the store. */
  lastPosition: number;
}

export type WebhookKey = readonly [store: number, user: number, id: string];

/** The webhooks of a storage (storage.ts). They end with their user. */
export interface WebhookStorage {
  /** In ascending order of id. */
  list(user: Identity): Promise<Webhook[]>;
  /** Those that can have something to send. `id` as in `ScanQuery`: more than `limit` if others follow it. */
  changed(after: string, limit: number): Promise<WebhookKey[]>;
  /** Those whose message is due. First those that wait the longest. */
  due(nowMs: number, limit: number): Promise<WebhookKey[]>;
  find(key: WebhookKey): Promise<Webhook | undefined>;
  /**
   * Stores a webhook, with another version. Resolves to undefined if another call has changed or removed it since it was
   * read. Rejects with `too-many-webhooks`.
   */
  set(webhook: Webhook, by?: Caller): Promise<Webhook | undefined>;
  /** Resolves to whether the caller had it. */
  remove(by: Caller, id: string): Promise<boolean>;
  /** What its user can read now. Undefined once they are removed. */
  readerOf(webhook: Webhook): Promise<Reader | undefined>;
}

/** A message waits until no later than this, unless a clock was set back since: then it is due now. */
export const maxDueAtMs = (nowMs: number) => nowMs + maxPauseMs;

export const isDue = ({ dueAtMs }: WebhookState, nowMs: number) =>
  dueAtMs <= nowMs || dueAtMs > maxDueAtMs(nowMs);

/** What an attempt has found. */
export interface Answer {
  /** As in `WebhookState`. */
  result: string;
  retryAfterMs?: number;
}

export const isSuccess = ({ result }: Answer) => /^2\d\d$/.test(result);

export function afterAttempt<S extends WebhookState>(before: S, answer: Answer, nowMs: number): S {
  const { message: { cursor } = before, failing: { sinceMs = nowMs, attempts = 0 } = {} } = before;
  const { result, retryAfterMs = 0 } = answer;
  if (isSuccess(answer)) return { ...before, ...idle, cursor, result };
  // From 5 s to an hour. It varies, so that not all endpoints of a server try again at once.
  const pauseMs = Math.min(5_000 * 3 ** attempts, hourMs) * (0.8 + 0.4 * Math.random());
  const dueAtMs = nowMs + Math.round(Math.min(Math.max(pauseMs, retryAfterMs), maxPauseMs));
  const failing = { sinceMs, attempts: attempts + 1 };
  const after = { ...before, result, isSending: false, dueAtMs, failing };
  if (result === '410') return { ...after, retired: 'The receiver responded with 410 (Gone).' };
  if (nowMs - sinceMs < maxFailingMs || attempts < minAttempts) return after;
  return { ...after, retired: `Every attempt has failed for three days, at last with: ${result}` };
}

/** A message of Standard Webhooks. */
export function bodyOf(type: string, atMs: number, data: object): string {
  return JSON.stringify({ type, timestamp: formatTimestamp(atMs), data });
}

/** The headers of an attempt to send the message with this id. The secret is in base64. */
export function headersOf(id: string, body: string, secret: string) {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signed = createHmac('sha256', Buffer.from(secret, 'base64'));
  return {
    'content-type': 'application/json',
    'user-agent': 'plant-store',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signed.update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  };
}

/** Whether it is an http or https URL without a user name and a fragment. */
export function isWebhookUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.username === '' && url.password === '' && /^https?:\/\/[^#\s]+$/i.test(text);
}
