/**
 * The history of a plant, in words.
 */
import type { Plant, PlantChange } from '../../client/client.ts';
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

type State = Pick<Plant, 'name' | 'tag' | 'owner'>;

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
  if (before.tag === after.tag) return joined(parts, '');
  if (before.tag === '') parts.push(sentence`Tag “${after.tag}” added`);
  else if (after.tag === '') parts.push(sentence`Tag “${before.tag}” removed`);
  else parts.push(sentence`Tag changed from “${before.tag}” to “${after.tag}”`);
  return joined(parts, ' · ');
}
