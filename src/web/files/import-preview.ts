/**
 * The second step of an import: what the file contains, which column is which field, and what the import will do.
 */
import { columnLabels, importedFields, omissionsOf, rowsOf } from '../../client/read-table.ts';
import type { ImportRow } from '../../client/read-table.ts';
import { placeOf, shownTextOf } from '../../client/send-rows.ts';
import { byId, element, joined, sentence, setText, show, type Text } from '../shared/dom.ts';
import { countOf, formatCount, titleOf } from '../shared/format.ts';
import { compare, type ImportFile, type readKnown } from './import-file.ts';

const maxPreviewed = 5;

const selects = importedFields.map((field) => ({
  field,
  select: byId(`import-column-${field}`, HTMLSelectElement),
}));
const headerSelect = byId('import-header', HTMLSelectElement);
let file: ImportFile | undefined;
let likelyHeader: number | undefined;
let known: Awaited<ReturnType<typeof readKnown>>;

byId('import-columns', HTMLElement).addEventListener('change', () => {
  if (file?.table === undefined) return;
  const { table } = file;
  const before = table.header;
  table.header = headerSelect.value === 'plant' ? undefined : likelyHeader;
  for (const { field, select } of selects) {
    if (select.value === '') delete table.columns[field];
    else table.columns[field] = Number(select.value);
  }
  if (table.header !== before) drawColumns();
  draw();
});

/** Shows a file, and asks for its columns if it does not name them. */
export function showPreview(chosen: ImportFile, plants: typeof known): void {
  file = chosen;
  known = plants;
  const { table } = file;
  likelyHeader = table?.header;
  show('import-columns', table !== undefined);
  byId('import-columns', HTMLDetailsElement).open = table?.columns.name === undefined;
  // A hidden field that is required would keep the form from being sent.
  byId('import-column-name', HTMLSelectElement).required = table !== undefined;
  headerSelect.required = table !== undefined && table.columns.name === undefined;
  show('import-header-field', headerSelect.required);
  headerSelect.value = '';
  if (table) {
    const record = table.records[table.header ?? 0];
    const texts = record && 'fields' in record ? record.fields.join(', ') : '';
    const place = `Line ${formatCount(record?.line ?? 1)} of the file: `;
    setText('import-header-label', place + shownTextOf(texts));
    drawColumns();
  }
  draw();
  (headerSelect.required ? headerSelect : byId('import-submit', HTMLButtonElement)).focus();
}

function drawColumns(): void {
  if (file?.table === undefined) return;
  const { table } = file;
  const labels = columnLabels(table);
  const samples = table.records
    .slice((table.header ?? -1) + 1)
    .find((record) => 'fields' in record);
  for (const { field, select } of selects) {
    const none = field === 'name' ? 'Choose a column' : 'No column';
    const options = labels.map((label, at) => {
      const sample = samples && 'fields' in samples ? (samples.fields[at] ?? '') : '';
      return element('option', { value: `${at}` }, sample === '' ? label : `${label} (${sample})`);
    });
    select.replaceChildren(element('option', { value: '' }, none), ...options);
    select.value = `${table.columns[field] ?? ''}`;
  }
}

function draw(): void {
  if (file === undefined) return;
  const { name, encoding, table } = file;
  if (table) file.rows = rowsOf(table);
  const { rows } = file;
  setText('import-source', sentence`${name}: ${countOf(rows.length, 'row')}`);
  const isUnknown = table !== undefined && table.columns.name === undefined;
  const omissions = table && !isUnknown ? omissionsOf(table) : [];
  setText('import-notes', [`Read as ${encoding}.`, ...omissions].join(' '));
  const used = importedFields.filter((field) => table?.columns[field] !== undefined);
  setText('import-columns-used', `Columns: ${used.map(titleOf).join(', ') || 'choose them'}`);

  const previewed = rows.slice(0, maxPreviewed);
  const whole = (_: ImportRow, at: number) => {
    const record = table?.records[at + (table.header ?? -1) + 1];
    const text = record && 'fields' in record ? record.fields.join(', ') : '';
    return [element('td', { colSpan: importedFields.length }, shownTextOf(text))];
  };
  const placeIn = ({ line }: ImportRow, at: number) => placeOf({ row: at + 1, line });
  showRows('import-rows', previewed, placeIn, isUnknown ? whole : cellsOf);
  const more = rows.length - previewed.length;
  setText('import-more', more > 0 ? `and ${formatCount(more)} more` : '');
  drawPlan(rows);
}

/** Shows what the import will do, as far as the page knows the plants of the store. */
function drawPlan(rows: readonly ImportRow[]): void {
  const hasIds = rows.some((row) => 'plant' in row && row.plant.id !== undefined);
  const { updated, unchanged, added, again, renamed } = compare(rows, known ?? []);
  const notes: Text[] = [];
  const [rename] = renamed;
  if (rename !== undefined) {
    const count = countOf(renamed.length, 'plant');
    const to = shownTextOf(rename.to);
    notes.push(sentence`New names for ${count}: “${rename.from}” becomes “${to}”, for example.`);
  }
  if (unchanged > 0)
    notes.push(
      `Rows that change nothing, because their plant is like that: ${formatCount(unchanged)}.`,
    );
  if (hasIds && known === undefined) notes.push('A row with the id of a plant changes that plant.');
  setText('import-plan', joined(notes, ' '));
  const which =
    again === added ? countOf(again, 'row') : `${formatCount(again)} of ${countOf(added, 'row')}`;
  const warning = `${which} ${again === 1 ? 'has' : 'have'} the name and tag of a plant that you can see. Did you import this file before? Importing adds these plants again.`;
  setText('import-again-warning', again > 0 ? warning : '');
  const adding = added > 0 ? `, add ${formatCount(added)}` : '';
  setText(
    'import-submit',
    updated > 0
      ? `Update ${formatCount(updated)}${adding}`
      : `Import ${countOf(rows.length, 'row')}`,
  );
}

function cellsOf(row: ImportRow): HTMLElement[] {
  if (!('fault' in row))
    return importedFields.map((field) => element('td', {}, shownTextOf(row.plant[field])));
  return [element('td', { colSpan: importedFields.length, className: 'fault' }, row.fault)];
}

/** Shows rows of the file, each with its place. */
export function showRows<Row>(
  id: string,
  rows: readonly Row[],
  placeIn: (row: Row, at: number) => string,
  cellsIn: (row: Row, at: number) => HTMLElement[],
): void {
  byId(id, HTMLElement).replaceChildren(
    ...rows.map((row, at) =>
      element('tr', {}, element('td', {}, placeIn(row, at)), ...cellsIn(row, at)),
    ),
  );
}
