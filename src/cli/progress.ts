import { PassThrough } from 'node:stream';
import { Presets, SingleBar } from 'cli-progress';
import { io, takesEscapes } from './output.ts';
import { onSignal } from './signals.ts';

type OnProgress = (done: number, total: number) => void;

/** A progress bar on standard error, which shows nothing unless that is a terminal that can move its cursor. */
export function createBar(title: string, unit: string): SingleBar {
  const format = `${title} [{bar}] {percentage}% | {value} of {total} ${unit}`;
  const stream = takesEscapes() ? io.stderr : new PassThrough();
  return new SingleBar({ format, stream }, Presets.legacy);
}

/** Shows a bar during `work`. A signal ends the process with status 130, and runs its handlers of `exit`, which clean up. */
export async function withProgress<T>(
  title: string,
  unit: string,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const bar = createBar(title, unit);
  const onProgress = (done: number, total: number) => {
    if (bar.isActive) bar.setTotal(total);
    else bar.start(total, done);
    bar.update(done);
  };
  using _ = onSignal(() => process.exit(130));
  try {
    return await work(onProgress);
  } finally {
    bar.stop();
  }
}
