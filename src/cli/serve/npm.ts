/**
 * What npm and npx do to a service that they start.
 */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { UsageError } from '../../refusal.ts';

/** How often to check whether npx still runs. A stop is noticed within this time. */
const parentPollMs = 500;

/**
 * Throws UsageError for `npm start --port 8081`: npm keeps flags before `--`, and passes the value on as an argument.
 * Its environment shows which flags it kept.
 */
export function refuseFlagsOfNpm({ options }: CommandUnknownOpts): void {
  if (process.env['npm_lifecycle_event'] !== 'start') return;
  const isGiven = (flag: string) => process.argv.some((one) => one.split('=')[0] === flag);
  const kept = options.filter((option) => {
    const variable = `npm_config_${option.name().replaceAll('-', '_')}`;
    return process.env[variable] !== undefined && !isGiven(`--${option.name()}`);
  });
  if (kept.length === 0) return;
  const flags = kept.map((option) => option.flags).join(' ');
  throw new UsageError(
    `npm keeps flags for itself unless they follow --. Use: npm start -- ${flags}`,
  );
}

/**
 * Stops the service when the shell between npx and this process ends: that shell gets SIGTERM from npx and does
 * not forward it. A service that something else starts, such as nohup, outlives its parent.
 */
export function stopWithNpx(stop: AbortController): void {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = '' } = process.env;
  if (event !== 'npx' || !/^'?plant-store'?(?: |$)/.test(script)) return;
  const { ppid } = process;
  setInterval(() => {
    if (process.ppid !== ppid) stop.abort();
  }, parentPollMs).unref();
}
