/**
 * Shows the progress of an import, and the refused rows.
 */
import { writeCsv } from '../../client/csv.ts';
import { placeOf, summaryOf, type ImportOutcome } from '../../client/send-rows.ts';
import { importedFields } from '../../client/read-rows.ts';
import { byId, element, inNextFrame, setText, show } from '../shared/dom.ts';
import { formatCount } from '../shared/format.ts';
import { save } from './export.ts';
import { textOf, type ImportSource } from './import-preview.ts';

const maxShownRefusals = 200;

export class ImportProgress {
  readonly source: ImportSource;
  readonly counts = { added: 0, 'already added': 0, refused: 0 };
  readonly #refusals: ImportOutcome[] = [];
  readonly #drawSoon = inNextFrame(() => this.#draw());

  constructor(source: ImportSource) {
    this.source = source;
    byId('import-bar', HTMLProgressElement).max = Math.max(1, source.rows.length);
    show('import-refused-list', false);
    this.#draw();
  }

  /** The number of rows that have an outcome. */
  get #done(): number {
    return this.counts.added + this.counts['already added'] + this.counts.refused;
  }

  /** The number of rows that have no outcome yet. */
  get left(): number {
    return this.source.rows.length - this.#done;
  }

  /** What the import has done. */
  get summary(): string {
    return summaryOf(this.counts, formatCount);
  }

  add(outcome: ImportOutcome): void {
    this.counts[outcome.status]++;
    if (outcome.status === 'refused') this.#refusals.push(outcome);
    this.#drawSoon();
  }

  #draw(): void {
    byId('import-bar', HTMLProgressElement).value = this.#done;
    setText('import-added', formatCount(this.counts.added));
    setText('import-before', formatCount(this.counts['already added']));
    setText('import-refused', formatCount(this.counts.refused));
  }

  /** Shows the result, with the refused rows. */
  end(): void {
    this.#draw();
    show('import-refused-list', this.counts.refused > 0);
    const rows = this.#sortedRefusals.slice(0, maxShownRefusals).map((outcome) => {
      const cells = [placeOf(outcome), outcome.reason ?? ''];
      return element('tr', {}, ...cells.map((cell) => element('td', {}, cell)));
    });
    byId('import-refusals', HTMLElement).replaceChildren(...rows);
    const more = this.#refusals.length - rows.length;
    const hint = `${formatCount(more)} more. Save the refused rows to see them.`;
    setText('import-refused-more', more > 0 ? hint : '');
  }

  /** Saves the refused rows with their reasons. */
  saveRefused(): void {
    const { name, text, rows } = this.source;
    const lines = text.split(/\r\n|\r|\n/);
    const records = this.#sortedRefusals.map(({ row, line, reason = '' }) => {
      const source = rows[row - 1];
      const plant: Record<string, unknown> =
        source && 'plant' in source
          ? { ...source.plant }
          : { name: source?.text ?? lines[(line ?? 0) - 1] };
      const cells = importedFields.map((field) => textOf(plant[field]));
      return writeCsv([...cells, line ?? `row ${row}`, reason]);
    });
    const header = writeCsv([...importedFields, 'line', 'reason']);
    const file = new Blob([header, ...records], { type: 'text/csv' });
    save(file, `${name.replace(/\.\w+$/, '')}-refused.csv`);
  }

  /** In the order of the file. The last rows are sent first. */
  get #sortedRefusals(): ImportOutcome[] {
    return this.#refusals.toSorted((one, other) => one.row - other.row);
  }
}
