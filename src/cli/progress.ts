import { Presets, SingleBar } from 'cli-progress';
import { terminationSignals } from './signals.ts';

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
      stream: process.stderr,
    },
    Presets.legacy,
  );
  const exit = () => process.exit(130); // runs the cleanup handlers of the process
  for (const signal of terminationSignals) process.once(signal, exit);
  try {
    return await work((done, total) => {
      if (bar.isActive) bar.setTotal(total);
      else bar.start(total, done);
      bar.update(done);
    });
  } finally {
    bar.stop();
    for (const signal of terminationSignals) process.off(signal, exit);
  }
}
