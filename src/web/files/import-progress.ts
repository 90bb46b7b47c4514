/**
 * Shows the progress of an import, and the refused rows.
 */
import { writeCsv } from '../../client/csv.ts';
import { summaryOf, type ImportOutcome } from '../../client/import.ts';
import type { ImportRow } from '../../client/rows.ts';
import { byId, element, setText, show } from '../shared/dom.ts';
import { formatCount } from '../shared/format.ts';
import { save } from './export.ts';
import { rowCount, textOf, type Place } from './import-preview.ts';

const maxShownRefusals = 200;
/** Drawing every row would cost more than adding it. */
const drawEveryMs = 100;

export class ImportProgress {
  readonly #rows: readonly ImportRow[];
  readonly #text: string;
  readonly #place: Place;
  readonly #onDraw: () => void;
  readonly #counts = { added: 0, 'already added': 0, refused: 0 };
  readonly #refusals: ImportOutcome[] = [];
  #isDrawPlanned = false;

  constructor(rows: readonly ImportRow[], text: string, place: Place, onDraw: () => void) {
    this.#rows = rows;
    this.#text = text;
    this.#place = place;
    this.#onDraw = onDraw;
    setText('import-refused-place', place);
    byId('import-bar', HTMLProgressElement).max = Math.max(1, rows.length);
    this.draw();
  }

  get added(): number {
    return this.#counts.added;
  }

  get total(): number {
    return this.#rows.length;
  }

  get done(): number {
    const { added, 'already added': before, refused } = this.#counts;
    return added + before + refused;
  }

  get hasRefused(): boolean {
    return this.#refusals.length > 0;
  }

  get position(): string {
    return `${formatCount(this.done)} of ${rowCount(this.total)}`;
  }

  get summary(): string {
    return summaryOf(this.#counts, formatCount);
  }

  add(outcome: ImportOutcome): void {
    this.#counts[outcome.status]++;
    if (outcome.status === 'refused') this.#refusals.push(outcome);
    if (this.#isDrawPlanned) return;
    this.#isDrawPlanned = true;
    setTimeout(() => this.draw(), drawEveryMs);
  }

  /** Shows the current state. */
  draw(): void {
    this.#isDrawPlanned = false;
    byId('import-bar', HTMLProgressElement).value = this.done;
    setText('import-added', formatCount(this.#counts.added));
    setText('import-before', formatCount(this.#counts['already added']));
    setText('import-refused', formatCount(this.#counts.refused));
    show('import-refused-list', this.hasRefused);
    const rows = this.#sortedRefusals
      .slice(0, maxShownRefusals)
      .map(({ row, line, reason = '' }) => {
        const place = formatCount(this.#place === 'Line' ? line : row);
        return element('tr', {}, element('td', {}, place), element('td', {}, reason));
      });
    byId('import-refusals', HTMLElement).replaceChildren(...rows);
    const more = this.#refusals.length - rows.length;
    const hint = `${formatCount(more)} more. Save the refused rows to see them.`;
    setText('import-refused-more', more > 0 ? hint : '');
    this.#onDraw();
  }

  /** Saves the refused rows with their reasons. */
  saveRefused(name: string): void {
    const lines = this.#text.split(/\r\n|\r|\n/);
    const records = this.#sortedRefusals.map(({ row, line, reason = '' }) => {
      const source = this.#rows[row - 1];
      const plant: Record<string, unknown> =
        source && 'plant' in source ? { ...source.plant } : { name: lines[line - 1] };
      const cells = ['name', 'tag', 'id'].map((field) => textOf(plant[field]));
      return writeCsv([...cells, line, reason]);
    });
    const header = writeCsv(['name', 'tag', 'id', 'line', 'reason']);
    const file = new Blob([header, ...records], { type: 'text/csv' });
    save(file, `${name.replace(/\.\w+$/, '')}-refused.csv`);
  }

  /** In the order of the file. The last rows are sent first. */
  get #sortedRefusals(): ImportOutcome[] {
    return this.#refusals.toSorted((one, other) => one.row - other.row);
  }
}
