/**
 * Shows the progress of an import, and the refused rows.
 */
import { writeCsv } from '../../client/csv.ts';
import { summaryOf, type ImportOutcome } from '../../client/import.ts';
import type { ImportRow } from '../../client/rows.ts';
import { byId, element, setText, show } from '../shared/dom.ts';
import { save } from './export.ts';
import { formatCount } from '../shared/format.ts';
import { textOf, type Place } from './import-preview.ts';

const maxShownRefusals = 200;
/** Drawing every row would cost more than adding it. */
const drawEveryMs = 100;

export class ImportProgress {
  readonly #rows: readonly ImportRow[];
  readonly #lines: readonly string[];
  readonly #place: Place;
  readonly #outcomes = new Map<number, ImportOutcome>();
  readonly #counts = { added: 0, 'already added': 0, refused: 0 };
  readonly #refusals: ImportOutcome[] = [];
  #drawnRefusals = 0;
  readonly #onDraw: () => void;
  #isDrawPlanned = false;

  constructor(rows: readonly ImportRow[], text: string, place: Place, onDraw: () => void) {
    this.#onDraw = onDraw;
    this.#rows = rows;
    this.#place = place;
    setText('import-refused-place', place);
    this.#lines = text.split(/\r\n|\r|\n/);
    byId('import-refusals', HTMLElement).replaceChildren();
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
    return this.#outcomes.size;
  }

  get hasRefused(): boolean {
    return this.#refusals.length > 0;
  }

  get summary(): string {
    return summaryOf(this.#counts, formatCount);
  }

  /** A row that was done before the import was interrupted keeps its first outcome. */
  add(outcome: ImportOutcome): void {
    if (this.#outcomes.has(outcome.row)) return;
    this.#outcomes.set(outcome.row, outcome);
    this.#counts[outcome.status]++;
    if (outcome.status === 'refused') this.#refusals.push(outcome);
    if (this.#isDrawPlanned) return;
    this.#isDrawPlanned = true;
    setTimeout(() => this.draw(), drawEveryMs);
  }

  /** Saves the refused rows with their reasons. */
  saveRefused(name: string): void {
    const records = this.#sortedRefusals.map(({ row, line, reason = '' }) => {
      const source = this.#rows[row - 1];
      const plant: Record<string, unknown> =
        source && 'plant' in source ? { ...source.plant } : { name: this.#lines[line - 1] };
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

  #drawRefusals(): void {
    if (this.#refusals.length === this.#drawnRefusals) return;
    this.#drawnRefusals = this.#refusals.length;
    const rows = this.#sortedRefusals
      .slice(0, maxShownRefusals)
      .map(({ row, line, reason = '' }) => {
        const place = formatCount(this.#place === 'Line' ? line : row);
        return element('tr', {}, element('td', {}, place), element('td', {}, reason));
      });
    byId('import-refusals', HTMLElement).replaceChildren(...rows);
  }

  /** Shows the current state. */
  draw(): void {
    this.#isDrawPlanned = false;
    byId('import-bar', HTMLProgressElement).value = this.#outcomes.size;
    setText('import-added', formatCount(this.#counts.added));
    setText('import-before', formatCount(this.#counts['already added']));
    setText('import-refused', formatCount(this.#counts.refused));
    show('import-refused-list', this.#refusals.length > 0);
    this.#drawRefusals();
    this.#onDraw();
    const more = this.#refusals.length - maxShownRefusals;
    setText(
      'import-refused-more',
      more > 0 ? `${formatCount(more)} more. Save the refused rows to see them.` : '',
    );
  }
}
