import { Presets, SingleBar } from 'cli-progress';
import { io } from './output.ts';
import { withExitOnSignal } from './signals.ts';

type OnProgress = (done: number, total: number) => void;

/** Shows a progress bar on standard error if that is a terminal. */
export async function withProgress<T>(
  title: string,
  unit: string,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const bar = new SingleBar(
    {
      format: `${title} [{bar}] {percentage}% | {value} of {total} ${unit}`,
      stream: io.stderr,
    },
    Presets.legacy,
  );
  const onProgress = (done: number, total: number) => {
    if (bar.isActive) bar.setTotal(total);
    else bar.start(total, done);
    bar.update(done);
  };
  try {
    return await withExitOnSignal(() => work(onProgress));
  } finally {
    bar.stop();
  }
}
