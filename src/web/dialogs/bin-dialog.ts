/**
 * The dialog with the deleted plants that the user can restore, the newest deletion first.
 */
import type { DeletedPlant, Plant } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import type { Connection } from '../session/connection.ts';
import { sentence, show, type Text } from '../shared/dom.ts';
import { formatTime } from '../shared/format.ts';
import { restore } from '../table/delete-plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How many plants the dialog shows, and how many more at each press. */
const moreCount = 50;
/** Maximum number of plants in a response. */
const maxPage = 1_000;

export class BinDialog extends MenuDialog {
  readonly #onBack: (plant: Plant) => void;
  /** One more than is shown, if others follow. */
  #plants: DeletedPlant[] = [];
  #shown = 0;

  /** `onBack` is called with each plant that was restored. */
  constructor(connection: Connection, onBack: (plant: Plant) => void) {
    super('bin', connection, ['more', 'more-open']);
    this.#onBack = onBack;
  }

  protected prepare(): void {
    this.#plants = [];
    this.#shown = 0;
    this.#draw();
  }

  /** Shows the first plants, or more. */
  protected async load(): Promise<void> {
    const wanted = this.#shown + moreCount;
    this.#plants = await this.run(async (store) => {
      const plants: DeletedPlant[] = [];
      for await (const plant of store.listDeleted({ pageSize: Math.min(wanted + 1, maxPage) })) {
        plants.push(plant);
        if (plants.length > wanted) break;
      }
      return plants;
    });
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
    const { name, owner, deletedAt, deletedBy = 'the operator' } = plant;
    const facts: Text[] = [
      ...optionalTexts.map((field) => plant[field]).filter((text) => text !== ''),
      ...(owner === this.connection.info?.user ? [] : [sentence`owned by ${owner}`]),
      sentence`deleted by ${deletedBy}`,
      formatTime(deletedAt),
    ];
    if (!this.can('plants:write')) return entryOf(name, facts);
    return entryOf(
      name,
      facts,
      this.entryButton(['Restore', name], () => this.#restore(plant)),
    );
  }

  async #restore(plant: DeletedPlant): Promise<Text> {
    const { current, fault } = await this.run((store) => restore(store, plant));
    if (current !== undefined) this.#onBack(current);
    const done = fault ?? sentence`Restored “${current?.name ?? ''}”.`; // with this id, another plant can have been deleted since
    this.#plants = this.#plants.filter((other) => other !== plant);
    this.#shown--;
    this.#draw();
    return done;
  }
}
