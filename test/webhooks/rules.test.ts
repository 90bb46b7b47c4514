/**
 * What follows from an attempt, over days.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { afterAttempt, isDue, type Webhook } from '../../src/webhooks/webhook.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const message = { id: 'msg_1', body: '{}', cursor: 'end', reach: '' };
const sending: Webhook = {
  store: 1,
  user: 1,
  userName: 'alice',
  id: '5f2c8d0e9b1a4c37',
  version: 1,
  lastPosition: 1,
  url: 'https://receiver.example/',
  secret: '',
  cursor: 'start',
  message,
  dueAtMs: 0,
  isSending: true,
};

it('a message is sent again for three days, with growing pauses of at most about an hour', () => {
  let [state, nowMs] = [sending, 1_000_000];
  const startedMs = nowMs;
  const pauses: number[] = [];
  while (state.retired === undefined) {
    state = afterAttempt(state, { status: 500 }, nowMs);
    pauses.push(state.dueAtMs - nowMs);
    assert.deepEqual([state.isSending, state.message, state.cursor], [false, message, 'start']);
    nowMs = state.dueAtMs;
  }
  const days = (nowMs - startedMs) / dayMs;
  assert.ok(days > 3 && days < 3.1, `${days} days`);
  assert.ok(pauses.length > 60 && pauses.length < 110, `${pauses.length} attempts`);
  assert.match(state.retired, /three days, at last with: 500/);
  const [first = 0, second = 0] = pauses;
  assert.ok(first >= 4_000 && first <= 6_000 && second >= 12_000, `${first}, ${second} ms`);
  assert.ok(Math.max(...pauses) <= 1.2 * hourMs);
});

it('a service that was stopped for a week, or a clock that has jumped, retires no webhook', () => {
  const failed = afterAttempt(sending, { status: 500 }, 0);
  const later = afterAttempt(failed, { status: 500 }, 7 * dayMs);
  assert.equal(later.retired, undefined);
  const accepted = afterAttempt(later, { status: 200 }, 8 * dayMs);
  const { cursor, failing } = accepted;
  assert.deepEqual([cursor, failing, accepted.message], ['end', undefined, undefined]);
});

it('Retry-After makes a pause longer, up to two hours', () => {
  const dueAfter = (retryAfterMs: number) =>
    afterAttempt(sending, { status: 429, retryAfterMs }, 0).dueAtMs;
  assert.ok(dueAfter(1_000) >= 4_000);
  assert.equal(dueAfter(1.5 * hourMs), 1.5 * hourMs);
  assert.equal(dueAfter(30 * dayMs), 2 * hourMs);
  let [state, nowMs] = [sending, 0];
  for (; state.retired === undefined; nowMs = state.dueAtMs) {
    state = afterAttempt(state, { status: 503, retryAfterMs: dayMs }, nowMs);
  }
  assert.ok(nowMs <= 3.1 * dayMs, `retired after ${nowMs / dayMs} days`);
});

it('a clock that was set back delays no webhook for long', () => {
  const nowMs = 30 * dayMs;
  const accepted = afterAttempt(sending, { status: 204 }, nowMs);
  const failed = afterAttempt(sending, { status: 500 }, nowMs);
  assert.deepEqual([isDue(accepted, nowMs), isDue(failed, nowMs)], [true, false]);
  assert.ok(isDue(accepted, nowMs - hourMs), 'it waits for nothing');
  assert.ok(isDue(failed, nowMs - 3 * hourMs), 'no pause is so long');
});
