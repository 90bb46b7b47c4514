/**
 * The dialog with the deleted plants that the user can restore, the newest deletion first.
 */
import type { DeletedPlant, Plant, Token } from '../../client/client.ts';
import type { Connection } from '../session/connection.ts';
import { sentence, show, type Text } from '../shared/dom.ts';
import { formatTime } from '../shared/format.ts';
import { restore } from '../table/delete-plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How many plants the dialog shows, and how many more at each press. */
const moreCount = 50;

export class BinDialog extends MenuDialog {
  readonly #onBack: (plant: Plant) => void;
  #user = '';
  #canRestore = false;
  /** One more than is shown, if others follow. */
  #plants: DeletedPlant[] = [];
  #shown = 0;
  #others: AsyncGenerator<DeletedPlant> | undefined;

  /** `onBack` is called with each plant that was restored. */
  constructor(connection: Connection, onBack: (plant: Plant) => void) {
    super('bin', connection, ['more', 'more-open']);
    this.#onBack = onBack;
  }

  protected prepare({ user, scopes }: Token): void {
    this.#user = user;
    this.#canRestore = scopes.includes('plants:write');
    this.#plants = [];
    this.#shown = 0;
    this.#others = undefined;
    this.#draw();
  }

  /** Shows the first plants, or more. */
  protected async load(): Promise<void> {
    if (this.#others === undefined) {
      this.#others = this.connection.store.listDeleted({ pageSize: moreCount + 1 });
      this.#plants = [];
    }
    const others = this.#others;
    const wanted = this.#shown + moreCount;
    try {
      while (this.#plants.length <= wanted) {
        const next = await others.next();
        if (others !== this.#others) return; // the dialog was opened again meanwhile
        if (next.done === true) break;
        this.#plants.push(next.value);
      }
    } catch (error) {
      if (others === this.#others) this.#others = undefined; // it has ended: the next press reads all again
      throw error;
    }
    this.#shown = wanted;
    this.#draw();
  }

  protected async send(): Promise<void> {
    await this.load();
  }

  #draw(): void {
    show('bin-form', this.#plants.length > this.#shown);
    drawEntries(
      'bin-plants',
      this.#plants.slice(0, this.#shown).map((plant) => this.#entry(plant)),
    );
  }

  #entry(plant: DeletedPlant): HTMLElement {
    const { name, tag, owner, deletedAt, deletedBy = 'the operator' } = plant;
    const facts: Text[] = [
      ...(tag === '' ? [] : [tag]),
      ...(owner === this.#user ? [] : [sentence`owned by ${owner}`]),
      sentence`deleted by ${deletedBy}`,
      formatTime(deletedAt),
    ];
    if (!this.#canRestore) return entryOf(name, facts);
    return entryOf(
      name,
      facts,
      this.entryButton(['Restore', name], () => this.#restore(plant)),
    );
  }

  async #restore(plant: DeletedPlant): Promise<Text> {
    const { current, fault } = await restore(this.connection.store, plant);
    if (current !== undefined) this.#onBack(current);
    const done = fault ?? sentence`Restored “${current?.name ?? ''}”.`; // with this id, another plant can have been deleted since
    this.#plants = this.#plants.filter((other) => other !== plant);
    this.#shown--;
    this.#draw();
    return done;
  }
}
