/**
 * Problems of the service that are a result among others. Every other error is a bug.
 */
import { PlantStoreError } from '../../client/problem.ts';

/** What a promise resolves to, or the problem with which it fails. */
export async function outcomeOf<T>(promise: Promise<T>): Promise<T | PlantStoreError> {
  return promise.catch((error: unknown) => {
    if (error instanceof PlantStoreError) return error;
    throw error;
  });
}
