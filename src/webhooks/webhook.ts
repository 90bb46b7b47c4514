/**
 * Webhooks: endpoints that get the changes a user can read as messages, after Standard Webhooks. One is a row, from which
 * any process can continue.
 */
import { createHmac, randomUUID } from 'node:crypto';
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

/** As in Standard Webhooks. */
interface Message {
  id: string;
  body: string;
}

/** It is stored before the first attempt, so that each attempt sends the same. */
interface StoredMessage extends Message {
  /** Where to continue once it has arrived. */
  cursor: string;
  /** A hash of the database and of what the user could read. If it is another one now, the message is made again. */
  reach: string;
}

/** Times are in milliseconds since the Unix epoch. */
export interface Webhook extends Identity {
  id: string;
  /** Another one after each `set`. 0 before the first. */
  version: number;
  userName: string;
  /** The position of the last change in the store. */
  lastPosition: number;
  url: string;
  /** In base64. */
  secret: string;
  /** Of the feed: the receiver has all that is before it. */
  cursor: string;
  message?: StoredMessage | undefined;
  /** When to send the message: after a pause, or if the process that sends has ended. 0 without a message. */
  dueAtMs: number;
  isSending: boolean;
  /** Since the last message has arrived. */
  failing?: { sinceMs: number; attempts: number } | undefined;
  /** To the last attempt. */
  answer?: Answer | undefined;
  /** Why nothing is sent any more. */
  retired?: string | undefined;
}

/** The status of a response, or why there was none. */
interface Answer {
  status?: number | undefined;
  error?: string;
  retryAfterMs?: number;
}

/** Sends a message once. Never rejects. */
export type Post = (
  to: Pick<Webhook, 'url' | 'secret'>,
  message: Message,
  signal?: AbortSignal,
) => Promise<Answer>;

/** The state without a message. */
export const idle = { message: undefined, dueAtMs: 0, isSending: false, failing: undefined };

export type WebhookKey = readonly [store: number, user: number, id: string];

/** The webhooks of a storage (storage.ts). They end with their user. */
export interface WebhookStorage {
  /** In ascending order of id. */
  list(user: Identity): Promise<Webhook[]>;
  /** Those that can have something to send, in ascending order of id, after this one. More than `limit` if others follow. */
  changed(after: string, limit: number): Promise<WebhookKey[]>;
  /** Those whose message is due, in the order of time. */
  due(nowMs: number, limit: number): Promise<WebhookKey[]>;
  find(key: WebhookKey): Promise<Webhook | undefined>;
  /**
   * Stores a webhook, with another version. Resolves to undefined if another call has changed or removed it since it was
   * read. Rejects with `too-many-webhooks`.
   */
  set(webhook: Webhook, by?: Caller, request?: string): Promise<Webhook | undefined>;
  /** Resolves to whether the caller had it. */
  remove(by: Caller, id: string, request?: string): Promise<boolean>;
  /** What its user can read now. Rejects with `invalid-token` once they are removed. */
  readerOf(webhook: Webhook): Promise<Reader>;
}

/** A message waits until no later than this, unless a clock was set back since: then it is due now. */
export const maxDueAtMs = (nowMs: number) => nowMs + maxPauseMs;

export const isDue = ({ dueAtMs }: Webhook, nowMs: number) =>
  dueAtMs <= nowMs || dueAtMs > maxDueAtMs(nowMs);

export const isSuccess = ({ status = 0 }: Answer) => status >= 200 && status < 300;

export function afterAttempt(before: Webhook, answer: Answer, nowMs: number): Webhook {
  const { message: { cursor } = before, failing: { sinceMs = nowMs, attempts = 0 } = {} } = before;
  const { status, error, retryAfterMs = 0 } = answer;
  if (isSuccess(answer)) return { ...before, ...idle, cursor, answer };
  // From 5 s to an hour. It varies, so that not all endpoints of a server try again at once.
  const pauseMs = Math.min(5_000 * 3 ** attempts, hourMs) * (0.8 + 0.4 * Math.random());
  const dueAtMs = nowMs + Math.round(Math.min(Math.max(pauseMs, retryAfterMs), maxPauseMs));
  const failing = { sinceMs, attempts: attempts + 1 };
  const after: Webhook = { ...before, answer, isSending: false, dueAtMs, failing };
  if (status === 410) after.retired = 'The receiver responded with 410 (Gone).';
  else if (nowMs - sinceMs >= maxFailingMs && attempts >= minAttempts) {
    after.retired = `Every attempt has failed for three days, at last with: ${status ?? error}`;
  }
  return after;
}

/** `data` is JSON. */
export function messageOf(type: string, atMs: number, data: string): Message {
  const body = `{"type":"${type}","timestamp":"${formatTimestamp(atMs)}","data":${data}}`;
  return { id: `msg_${randomUUID()}`, body };
}

/** The headers of an attempt to send the message. The secret is in base64. */
export function headersOf({ id, body }: Message, secret: string) {
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
