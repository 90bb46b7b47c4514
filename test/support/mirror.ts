/**
 * A copy of the plants that a user can list. It follows the feed as a client does, and begins again when its cursor ends.
 */
import assert from 'node:assert/strict';
import type { Grant } from '../../src/access/access.ts';
import { readFeed } from '../../src/log/feed.ts';
import type { Plant } from '../../src/plants/plant.ts';
import { isProblem } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { listOf } from './scene.ts';

export class Mirror {
  plants = new Map<number, Plant>();
  /** Why it began again. */
  readonly reasons: string[] = [];
  #cursor: string | undefined;
  #position = 0;

  /** Follows to the end of the log. */
  async follow(storage: Storage, grant: Grant, limit = 1_000): Promise<void> {
    const { caller, userName } = grant;
    const reader = { ...caller, userName };
    for (let isEnd = false, isNew = false; !isEnd;) {
      isNew = this.#cursor === undefined;
      const page = await readFeed(storage.log, reader, this.#cursor, limit).catch(
        (error: unknown) => {
          if (!isProblem(error, 'cursor-ended')) throw error;
          assert.ok(!isNew, 'a new cursor works');
          this.reasons.push(Object.values(error.members ?? {}).join());
          this.#cursor = undefined;
        },
      );
      if (page === undefined) continue;
      if (isNew) {
        const plants = await listOf(storage, caller);
        this.plants = new Map(plants.map((plant) => [plant.id, plant]));
      } else assert.ok(page.position >= this.#position, 'the position never goes back');
      const ids = page.changes.map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length, 'each plant is in a page once');
      for (const { id, event, plant } of page.changes) {
        assert.equal(event === 'deleted', plant === undefined);
        if (plant === undefined) this.plants.delete(id);
        else this.plants.set(id, { id, name: plant.name, tag: plant.tag });
      }
      this.#cursor = page.cursor;
      this.#position = page.position;
      isEnd = page.isEnd && !isNew;
    }
  }

  /** The plants as a list has them. */
  list(): Plant[] {
    return [...this.plants.values()].toSorted((a, b) => a.id - b.id);
  }
}
