/**
 * Reads plants from a mirror after the receipts of changes. It can be late, but never older than the change.
 */
import { PlantStore } from '../../src/client/client.ts';
import type { Network, Sent, User } from './client-under-faults.ts';
import type { Content, OfPlant } from './history.ts';

interface Receipt {
  id: number;
  position: number;
  /** When the change was sent. */
  call: number;
}

const fields = ['id', 'name', 'tag'] as const;

export class MirrorReader {
  readonly #network: Network;
  readonly #user: User;
  readonly #append: (see: OfPlant) => void;
  readonly #end = new AbortController();
  #newest: Receipt | undefined;
  #wake = () => {};
  readonly #followed: Promise<void>;

  /** `user` is a manager. */
  constructor(network: Network, user: User, append: (see: OfPlant) => void) {
    this.#network = network;
    this.#user = user;
    this.#append = append;
    this.#followed = this.#follow();
    this.#followed.catch(() => {}); // `stop` rejects with it
  }

  /** After a change to the plant. */
  note(id: number | undefined, { response, call }: Sent): void {
    const header = response?.headers.find((line) => line.startsWith('change-position:'));
    if (header === undefined || id === undefined) return;
    this.#newest = { id, position: Number(header.split(':')[1]), call };
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#end.abort();
    this.#wake();
    await this.#followed;
  }

  async #follow(): Promise<void> {
    const { addresses, random, count } = this.#network;
    const { signal } = this.#end;
    const store = new PlantStore({
      url: addresses[random(addresses.length)] ?? '',
      token: this.#user.token,
      timeoutMs: 120_000,
      maxRetries: 100,
    });
    try {
      const mirror = await store.mirror({ fields, signal });
      while (!signal.aborted) {
        const receipt = this.#newest;
        this.#newest = undefined;
        if (receipt === undefined) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        const { id, position, call } = receipt;
        await mirror.until(position, { signal });
        const content = contentOf(mirror.plants.get(id));
        const see = { kind: 'see', content } as const;
        this.#append({ who: this.#user, id, call, end: performance.now(), effect: see });
        count('mirrored');
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

function contentOf(plant: Content | undefined): Content | undefined {
  return plant && { name: plant.name, tag: plant.tag };
}
