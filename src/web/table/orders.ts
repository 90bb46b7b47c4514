/**
 * The orders of a list, as the service has them, so that the page finds the places of plants that others add or rename.
 */
import type { Plant } from '../../client/client.ts';
import { fold } from '../../plants/folding.ts';

export type Order = (one: Plant, other: Plant) => number;

const byId: Order = (one, other) => one.id - other.id;

const byName: Order = (one, other) => {
  const [name, otherName] = [fold(one.name), fold(other.name)];
  return name === otherName ? 0 : name < otherName ? -1 : 1;
};

export const orders = {
  id: byId,
  name: (one, other) => byName(one, other) || byId(one, other),
  '-name': (one, other) => byName(other, one) || byId(one, other),
} satisfies Record<string, Order>;
