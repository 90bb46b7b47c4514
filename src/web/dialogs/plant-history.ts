/**
 * The history of a plant, in words.
 */
import type { Plant, PlantChange } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { titleOf } from '../shared/format.ts';
import { joined, sentence, type Text } from '../shared/dom.ts';

export interface Step {
  what: Text;
  who: string;
  /** RFC 3339. */
  at: string;
}

/** The service shows no more changes (src/log/change-log.ts). */
const maxSteps = 100;

/** Whether there can be earlier changes than these. */
export function isCut(changes: readonly PlantChange[]): boolean {
  return changes.length === maxSteps && changes.at(-1)?.event !== 'created';
}

type State = Omit<Plant, 'id' | 'access'>;

/** The steps of a history, newest first. `current` is the plant as it is now, if it is there. */
export function stepsOf(changes: readonly PlantChange[], current: State | undefined): Step[] {
  let after = current;
  return changes.map((change) => {
    const { at, user = 'The operator', before } = change;
    const what = textOf(change, after);
    after = before ?? after;
    return { what, who: user, at };
  });
}

function textOf({ event, before }: PlantChange, after: State | undefined): Text {
  switch (event) {
    case 'created':
      return 'Added';
    case 'deleted':
      return 'Deleted';
    case 'restored':
      return 'Restored';
    case 'moved':
      return sentence`Moved from “${before?.owner ?? ''}” to “${after?.owner ?? ''}”`;
    case 'updated':
      return before && after ? updateText(before, after) : 'Edited';
    default:
      return event satisfies never; // of a later version of the service
  }
}

function updateText(before: State, after: State): Text {
  const parts: Text[] = [];
  if (before.name !== after.name)
    parts.push(sentence`Renamed from “${before.name}” to “${after.name}”`);
  for (const field of optionalTexts) {
    const [title, was, is] = [titleOf(field), before[field], after[field]];
    if (was === is) continue;
    if (was === '') parts.push(sentence`${title} “${is}” added`);
    else if (is === '') parts.push(sentence`${title} “${was}” removed`);
    else parts.push(sentence`${title} changed from “${was}” to “${is}”`);
  }
  return joined(parts, ' · ');
}
