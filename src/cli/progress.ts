import { Presets, SingleBar } from 'cli-progress';
import { endingSignals } from './signals.ts';

/** Called now and then: so many of so many are done. */
type OnProgress = (done: number, total: number) => void;

/** A bar on standard error: a moving one on a terminal, a line now and then elsewhere. */
export async function withProgress<T>(
  title: string,
  unit: string,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const bar = new SingleBar(
    {
      format: `${title} [{bar}] {percentage}% | {value} of {total} ${unit}`,
      stream: process.stderr,
      noTTYOutput: true,
    },
    Presets.legacy,
  );
  const exit = () => process.exit(130); // runs what cleans up on exit
  for (const signal of endingSignals) process.once(signal, exit);
  try {
    return await work((done, total) => {
      if (bar.isActive) bar.setTotal(total);
      else bar.start(total, done);
      bar.update(done);
    });
  } finally {
    bar.stop();
    for (const signal of endingSignals) process.off(signal, exit);
  }
}
