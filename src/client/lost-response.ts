/**
 * What the client concludes if a request is refused after an attempt whose response was lost: that attempt may have done
 * what was asked. docs/reference/client.md describes the rules.
 */
import type { Call } from './call.ts';
import { isProblem } from './problem.ts';
import { textFields, type NewPlant, type PlantPatch, type ProblemKind } from './types.ts';

/**
 * What was sent resolves to. If it is refused with this kind of problem, and an earlier attempt can be the reason, `find`
 * reads the result of that attempt: undefined if it has not done this.
 */
export async function unlessDone<T>(
  call: Call,
  kind: ProblemKind,
  sent: Promise<T>,
  find: () => Promise<T | undefined>,
): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    if (!call.outcomeUnknown || !isProblem(error, kind)) throw error;
    const found = await find().catch((problem: unknown) => {
      if (!isProblem(problem, 'plant-not-found')) throw problem; // or it belongs to another user
    });
    if (found === undefined) throw error;
    return found;
  }
}

/** Whether the plant is as the create makes it. */
export function isCreated(plant: NewPlant, created: NewPlant): boolean {
  return textFields.every((field) => plant[field] === (created[field] ?? ''));
}

/** Whether the plant is as the patch makes it. */
export function isUpdated(plant: NewPlant, patch: PlantPatch): boolean {
  return textFields.every(
    (field) => patch[field] === undefined || plant[field] === (patch[field] ?? ''),
  );
}
