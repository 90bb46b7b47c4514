import type { PlantStore } from './client.ts';
import { isProblem } from './problem.ts';

/** Whether the store has such a user. For managers: to others, the service does not reveal who is one. */
export async function isUser(store: PlantStore, name: string): Promise<boolean> {
  try {
    await store.explainAccess(name, 1); // what it explains does not matter: it is one user, not a list
    return true;
  } catch (error) {
    if (isProblem(error, 'user-not-found')) return false;
    throw error;
  }
}
