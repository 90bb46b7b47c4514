/**
 * The dialog that prints labels: the texts of each plant, and a QR code that opens it on the page. The pages to print
 * are beside the dialog and visible only in print. labels.css draws them from the measures that are set here.
 */
import type { Plant } from '../../client/client.ts';
import { isLoopback } from '../../client/request.ts';
import { serviceUrl } from '../session/connection.ts';
import { store } from '../session/session.ts';
import { byId, element, setText, show } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { countOf } from '../shared/format.ts';
import { qrCode } from '../shared/qr-code.ts';
import { rowFields } from '../table/plant-list.ts';
import { view } from '../table/plants.ts';

/** Labels in the middle of a page: lengths in millimeters. The gap is between columns; rows have none. */
type Sheet = Record<
  'pageWidth' | 'pageHeight' | 'labelWidth' | 'labelHeight' | 'columns' | 'rows' | 'gap',
  number
>;

const a4 = { pageWidth: 210, pageHeight: 297, gap: 2.54 };
const letter = { pageWidth: 215.9, pageHeight: 279.4, gap: 3.175 };
/** By the values of the field in index.html. */
const sheets: Record<string, Sheet> = {
  L7160: { ...a4, labelWidth: 63.5, labelHeight: 38.1, columns: 3, rows: 7 },
  L7651: { ...a4, labelWidth: 38.1, labelHeight: 21.2, columns: 5, rows: 13 },
  5160: { ...letter, labelWidth: 66.675, labelHeight: 25.4, columns: 3, rows: 10 },
  roll: {
    pageWidth: 62,
    pageHeight: 29,
    labelWidth: 62,
    labelHeight: 29,
    columns: 1,
    rows: 1,
    gap: 0,
  },
};
/** A browser takes seconds for more. */
const maxLabels = 1_000;
/** Longer names are printed in small letters. */
const longName = 30;

const dialog = byId('labels', HTMLDialogElement);
const sheetField = byId('labels-sheet', HTMLSelectElement);
const firstField = byId('labels-first', HTMLInputElement);
const pages = byId('label-pages', HTMLElement);
const preview = byId('labels-preview', HTMLElement);
const submit = byId('labels-submit', HTMLButtonElement);
/** Sets the size of the paper. */
const paper = new CSSStyleSheet();
let labels: HTMLElement[] = [];
let hasMore = false;
let opened = new AbortController();

show('labels-local', isLoopback(serviceUrl));
const form = new Form('labels', async () => print());
byId('labels-form', HTMLFormElement).addEventListener('input', draw);
dialog.addEventListener('close', () => {
  opened.abort();
  document.adoptedStyleSheets = []; // what else is printed has the paper of the printer
  for (const place of [pages, preview]) place.replaceChildren();
});

/** Opens the dialog for these plants, or for all of the view. */
export async function openLabels(plants?: readonly Plant[]): Promise<void> {
  const { signal } = (opened = new AbortController());
  form.clear();
  submit.disabled = true;
  setText('labels-count', 'Loading …');
  document.adoptedStyleSheets = [paper];
  dialog.showModal();
  await form.run(async () => {
    // One more than get a label, if there are so many.
    const options = { ...view, fields: rowFields, signal };
    const chosen = plants ?? (await store.listUpTo(maxLabels + 1, options));
    const drawn = await Promise.all(chosen.slice(0, maxLabels).map((plant) => labelOf(plant)));
    if (signal.aborted) return;
    labels = drawn;
    hasMore = chosen.length > maxLabels;
    submit.disabled = labels.length === 0;
    draw();
  });
}

async function labelOf({ id, name, tag }: Plant): Promise<HTMLElement> {
  const className = `label-name ${name.length > longName ? 'long' : ''}`;
  return element(
    'div',
    { className: 'label' },
    element(
      'div',
      { className: 'label-texts' },
      element('p', { className, dir: 'auto' }, name),
      element('p', { className: 'label-tag', dir: 'auto' }, tag),
      element('p', { className: 'label-id' }, `#${id}`),
    ),
    await qrCode(new URL(`#plant=${id}`, serviceUrl).href),
  );
}

/** Puts the labels on pages, as the fields say. */
function draw(): void {
  const sheet = sheets[sheetField.value];
  if (sheet === undefined) return;
  const { pageWidth, pageHeight, columns, rows } = sheet;
  const count = columns * rows;
  paper.replaceSync(`@page { size: ${pageWidth}mm ${pageHeight}mm; margin: 0; }`);
  firstField.max = String(count);
  if (count === 1) firstField.value = '1';
  show('labels-first-field', count > 1);
  const used = firstField.validity.valid ? firstField.valueAsNumber - 1 : 0;
  const places = [...Array.from({ length: used }, () => element('div')), ...labels];
  const drawn = Array.from({ length: Math.ceil(places.length / count) }, (_, at) =>
    element('div', { className: 'label-page' }, ...places.slice(at * count, (at + 1) * count)),
  );
  pages.replaceChildren(...drawn);
  preview.replaceChildren(...drawn.slice(0, 1).map((page) => page.cloneNode(true)));
  const parts = document.querySelectorAll<HTMLInputElement>('#labels-parts input:checked');
  for (const place of [pages, preview]) {
    place.dataset['parts'] = [...parts].map(({ value }) => value).join(' ');
    for (const [name, value] of Object.entries(sheet)) {
      place.style.setProperty(`--${name}`, String(value));
    }
  }
  const others = hasMore ? ' The plants after them get none.' : '';
  const [labelCount, pageCount] = [countOf(labels.length, 'label'), countOf(drawn.length, 'page')];
  setText('labels-count', `${labelCount} on ${pageCount}.${others}`);
}
