/**
 * Passes on the changes of a store as they happen: to the output, a command or an address. None is skipped: if one fails, the
 * watch tries it again or ends.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns';
import { once } from 'node:events';
import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { pauseMs } from '../../client/call.ts';
import {
  PlantStore,
  type DefaultFields,
  type PlantStoreError,
  type PlantStoreOptions,
} from '../../client/client.ts';
import { followAnew, type NewBatch } from '../../client/follow.ts';
import { maxTimeoutMs } from '../../client/options.ts';
import { printable } from '../../client/printable.ts';
import { pause } from '../../client/waiting.ts';
import { parseCursor } from '../../log/feed.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { openPost } from '../../webhooks/networks.ts';
import { attemptTimeoutMs, isSuccess, messageOf } from '../../webhooks/webhook.ts';
import { flag } from '../options.ts';
import { printAll, printError } from '../output.ts';
import { onSignal } from '../signals.ts';
import { printableJson } from '../terminal.ts';
import { printsJson, serviceCommand, withService, type ServiceOptions } from '../service.ts';

/** A webhook has at most 20 KB. This number of the longest changes has. */
const maxForwarded = 8;

export function addWatchCommand(plants: Command): void {
  serviceCommand(plants, 'watch', [
    'plant-store plants watch',
    'plant-store plants watch --exec "jq -r .plant.name >> names.txt"',
    'plant-store plants watch --forward-to http://127.0.0.1:3000/webhook',
  ])
    .description('show changes as they happen: a line for each on a terminal, otherwise JSON')
    .addOption(
      new Option(
        '--after <cursor>',
        'where an earlier watch has ended; without it, from now on',
      ).argParser(parseAfter),
    )
    .addOption(
      new Option(
        '--exec <command>',
        'run this in a shell for each change, one at a time, with the change as JSON on standard input; end if it fails',
      ).conflicts('forwardTo'),
    )
    .addOption(
      new Option(
        '--forward-to <url>',
        'send the changes to this address, signed like a webhook, and repeat until it accepts them',
      ).argParser(parseReceiver),
    )
    .addOption(
      flag(
        '--webhook-secret <secret>',
        'secret that signs what is forwarded: whsec_ and base64; by default a random one',
      ).argParser(parseSecret),
    )
    .action((options) => withService(options, (clientOptions) => watch(clientOptions, options)));
}

interface WatchOptions extends ServiceOptions {
  after?: string | undefined;
  exec?: string | undefined;
  forwardTo?: URL | undefined;
  webhookSecret?: string | undefined;
}

async function watch(clientOptions: PlantStoreOptions, options: WatchOptions): Promise<void> {
  const { exec, forwardTo } = options;
  const stop = new AbortController();
  const { signal } = stop;
  using _ = onSignal(() => stop.abort());
  let { after } = options;
  let state: 'starting' | 'following' | 'waiting' = 'starting';
  const beforeRetry = async (problem: PlantStoreError) => {
    if (state === 'starting') throw problem;
    if (state === 'following') printError(printable(`Waiting for the service: ${problem.detail}`));
    state = 'waiting';
    await pause(pauseMs(problem, 1), signal);
  };
  const store = new PlantStore({ ...clientOptions, timeoutMs: maxTimeoutMs, beforeRetry });
  const forward = forwardTo && forwarderTo(forwardTo, options.webhookSecret, signal);
  const textOf = printsJson(options) ? printableJson : lineOf;
  const pageSize = exec === undefined ? forwardTo && maxForwarded : 1; // the command gets each cursor

  async function* outputs(): AsyncGenerator<string, void> {
    const batches = followAnew<DefaultFields>(store, { after, pageSize, signal });
    for await (const batch of batches) {
      if (state === 'starting') printError('Watching for changes. Press Ctrl+C to stop.');
      state = 'following';
      const items = itemsOf(batch);
      await forward?.(batch);
      if (exec === undefined) yield items.map((item) => `${textOf(item)}\n`).join('');
      else for (const item of items) await run(exec, item, stop);
      ({ after } = batch);
    }
  }

  try {
    await printAll(outputs());
  } catch (error) {
    if (error !== signal.reason) throw error;
  } finally {
    const command = `npx plant-store plants watch --after ${after}`;
    if (after !== undefined) printError(`To continue from here: ${command}`);
  }
}

/** A change, or a gap after which plants should be listed again. The last item of a batch has the cursor behind it. */
type Item = (NewBatch['changes'][number] | { event: 'reset'; reason: string | undefined }) & {
  after?: string;
};

function itemsOf({ reset, changes, after }: NewBatch): Item[] {
  const gap = { event: 'reset', reason: reset?.reason } as const;
  const items: Item[] = reset === undefined ? changes : [gap, ...changes];
  return items.map((item, at) => (at === items.length - 1 ? { ...item, after } : item));
}

function lineOf(item: Item): string {
  if (item.event === 'reset') return `Some changes can be missing here (${item.reason}).`;
  const { at, event, id, user, plant } = item;
  const texts =
    plant === undefined ? '' : `: ${[plant.name, plant.tag].filter(Boolean).join(' · ')}`;
  return printable(`${at} ${event} ${id}${texts}${user === undefined ? '' : ` (${user})`}`);
}

/** Runs a command to its end. Throws a Refusal if it fails. */
async function run(command: string, item: Item, stop: AbortController): Promise<void> {
  const child = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin.on('error', () => {}).end(`${printableJson(item)}\n`); // a command need not read it
  const [status, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (status === 0) return;
  // Ctrl+C ends both, and the command can be first. Shells have a status for it.
  if (by === 'SIGINT' || status === 130) stop.abort();
  stop.signal.throwIfAborted();
  const what = 'id' in item ? `the change of plant ${item.id}` : 'a gap';
  throw new Refusal(`The command failed with ${by ?? `status ${status}`} for ${what}.`);
}

/** Returns a function that sends a batch, until the receiver accepts it. */
function forwarderTo(url: URL, givenSecret: string | undefined, signal: AbortSignal) {
  const secret = givenSecret?.replace('whsec_', '') ?? randomBytes(24).toString('base64');
  if (givenSecret === undefined) printError(`The secret of the webhook is whsec_${secret}`);
  const post = openPost(['0.0.0.0/0', '::/0'], lookup); // the user has chosen the address

  async function send(type: string, data: object): Promise<void> {
    const message = messageOf(type, Date.now(), JSON.stringify(data));
    for (let retries = 0; ; retries++) {
      const end = AbortSignal.any([signal, AbortSignal.timeout(attemptTimeoutMs)]);
      const answer = await post({ url: url.href, secret }, message, end);
      if (isSuccess(answer)) return;
      signal.throwIfAborted();
      const { status, error, retryAfterMs = 0 } = answer;
      const why = error ?? `status ${status}`;
      printError(printable(`The watch sends a message again, which ${url.href} refused: ${why}`));
      await pause(pauseMs({ retryAfterSeconds: retryAfterMs / 1_000 }, retries), signal);
    }
  }

  return async ({ reset, changes }: NewBatch) => {
    if (reset !== undefined) await send('plants.reset', { reason: reset.reason });
    if (changes.length > 0) await send('plants.changed', { changes });
  };
}

/** A message never contains the secret. */
function parseSecret(text: string): string {
  if (/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(text)) return text;
  throw new UsageError('The secret of a webhook is whsec_ and at least 24 bytes in base64.');
}

function parseAfter(text: string): string {
  if (parseCursor(text) !== undefined) return text;
  throw new InvalidArgumentError('Use a cursor that an earlier watch has printed.');
}

function parseReceiver(text: string): URL {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && url.username + url.password === '') return url;
  throw new InvalidArgumentError(
    'Use an http or https URL without a password, such as http://127.0.0.1:3000/webhook.',
  );
}
