/**
 * Does something with each of many plants, and shows how far it is.
 */
import { PlantStoreError } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { leaving } from '../session/connection.ts';
import { element, inNextFrame, sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { outcomeOf } from '../shared/outcome.ts';
import { toast } from '../shared/toast.ts';

const concurrency = 8;
let running = 0;

addEventListener('beforeunload', (event) => {
  if (running > 0 && !leaving.signal.aborted) event.preventDefault(); // the browser asks
});

/** What is done, as in "Deleting", "deleted". */
type Words = readonly [doing: string, done: string];

/**
 * Does the work for each plant until the user stops it, and shows why it failed if it did. The work returns why. What it
 * has done is shown in each frame. Returns whether it was done for all.
 */
export async function forEach<P extends { name: string }>(
  plants: readonly P[],
  [doing, done]: Words,
  work: (plant: P) => Promise<Text | undefined>,
  showDone = () => {},
): Promise<boolean> {
  const bar = element('progress', { max: plants.length, value: 0, ariaLabel: doing });
  const stop = element('button', { type: 'button' }, 'Stop');
  let isStopped = false;
  // The button can come where "Undo" was: a double click on that must not stop the undo.
  stop.addEventListener('click', ({ detail }) => (isStopped ||= detail < 2));
  const closeMessage = toast(
    sentence`${doing} ${whatOf(plants)} …`,
    ...(plants.length > 1 ? [stop] : []),
  );
  stop.previousElementSibling?.append(bar);
  const failures: Text[] = [];
  let left = plants.length;
  const draw = () => {
    bar.value = plants.length - left;
    showDone();
  };
  const drawSoon = inNextFrame(draw);
  running++;
  try {
    await Array.fromAsync(
      inParallel(plants, concurrency, async (plant) => {
        if (isStopped || leaving.signal.aborted) return;
        const failure = await outcomeOf(work(plant));
        if (failure instanceof PlantStoreError) failures.push(textOf(failure));
        else if (failure !== undefined) failures.push(failure);
        left--;
        drawSoon();
      }),
    );
  } finally {
    running--;
    closeMessage();
    draw();
  }
  const [failure] = failures;
  if (failure !== undefined) {
    toast(sentence`${countOf(failures.length, 'plant')} could not be ${done}. ${failure}`);
  }
  if (left > 0) toast(`Stopped: ${countOf(left, 'plant')} stay as they are.`);
  return failures.length + left === 0;
}

function textOf({ kind, detail }: PlantStoreError): string {
  return kind === 'precondition-failed' ? 'Somebody has changed it since.' : detail;
}

/** "“Ficus”", or "2 plants". */
export function whatOf(plants: readonly { name: string }[]): Text {
  const [plant] = plants;
  if (plant === undefined || plants.length > 1) return countOf(plants.length, 'plant');
  return sentence`“${plant.name}”`;
}
