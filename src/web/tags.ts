/**
 * How many plants each tag has, as bars that filter the table. The service does not count, so the page reads the tags
 * of all plants, or of the first ones if there are many.
 */
import type { Connection } from './connection.ts';
import { byId, element, onPress, setText, show } from './dom.ts';
import { formatCount, plantCount, tagText } from './format.ts';
import type { Plant } from './plant-pages.ts';

/** How many plants are counted before the user asks for more. */
const countedAtOnce = 20_000;
const pageSize = 1_000;
/** A store with more tags than this uses them as ids; the others are counted together. */
const maxTags = 10_000;
const maxBars = 30;

export class Tags {
  readonly #connection: Connection;
  readonly #onFilter: (tag: string) => void;
  readonly #onCount: () => void;
  /** Plants that were deleted since the last read began: its answer can be older than that. */
  readonly #deleted = new Set<number>();
  readonly #details = byId('tags', HTMLDetailsElement);
  readonly #counts = new Map<string, number>();
  #counted = 0;
  #isComplete = false;
  #after: number | undefined;
  #abort = new AbortController();
  #filter: string | undefined;

  constructor(
    connection: Connection,
    { onFilter, onCount }: { onFilter: (tag: string) => void; onCount: () => void },
  ) {
    this.#connection = connection;
    this.#onFilter = onFilter;
    this.#onCount = onCount;
    this.#details.open = isBesideTable();
    onPress('tags-all', () => this.#count(Infinity));
  }

  /** The number of plants, if it is known. */
  get total(): number | undefined {
    return this.#isComplete ? this.#counted : undefined;
  }

  /** Counts again from the beginning. */
  async restart(): Promise<void> {
    this.clear();
    await this.#count(countedAtOnce);
  }

  /** Stops counting, and forgets all tags. */
  clear(): void {
    this.#abort.abort();
    this.#counts.clear();
    this.#counted = 0;
    this.#after = undefined;
    this.#isComplete = false;
    this.#draw();
  }

  /** Counts a plant that was added, or with -1 one that was deleted. */
  change({ id, tag }: Plant, by: 1 | -1): void {
    if (!this.#isComplete && id > (this.#after ?? 0)) {
      if (by === -1) this.#deleted.add(id);
      return; // it has not been counted yet
    }
    this.#add(tag, by);
    this.#draw();
  }

  /** Marks the bar of the tag that the table shows. */
  mark(tag: string | undefined): void {
    this.#filter = tag;
    this.#draw();
  }

  async #count(limit: number): Promise<void> {
    this.#abort.abort();
    const { signal } = (this.#abort = new AbortController());
    show('tags-all', false);
    try {
      while (!this.#isComplete && this.#counted < limit) {
        this.#deleted.clear();
        const plants = await this.#connection.page({
          fields: ['id', 'tag'],
          limit: pageSize,
          after: this.#after,
          signal,
        });
        for (const { id, tag } of plants) if (!this.#deleted.has(id)) this.#add(tag, 1);
        this.#isComplete = plants.length === 0;
        this.#after = plants.at(-1)?.id;
        this.#draw();
      }
    } catch (error) {
      if (signal.aborted) return;
      setText('tags-note', 'The tags could not be counted.');
      throw error;
    }
    show('tags-all', !this.#isComplete);
  }

  #add(tag: string, by: number): void {
    this.#counted += by;
    const count = (this.#counts.get(tag) ?? 0) + by;
    if (count <= 0) this.#counts.delete(tag);
    else if (this.#counts.size < maxTags || this.#counts.has(tag)) this.#counts.set(tag, count);
  }

  #draw(): void {
    this.#onCount();
    const sorted = [...this.#counts].toSorted(([, one], [, other]) => other - one);
    const bars = sorted.slice(0, maxBars);
    const most = bars[0]?.[1] ?? 1;
    setText('tags-note', this.#note());
    this.#drawBars(bars.map(([tag, count]) => this.#bar(tag, count, most)));
    const others = this.#counted - bars.reduce((sum, [, count]) => sum + count, 0);
    show('tags-rest', others > 0);
    setText('tags-rest', `${plantCount(others)} with other tags`);
    byId('known-tags', HTMLDataListElement).replaceChildren(
      ...bars.filter(([tag]) => tag !== '').map(([tag]) => element('option', { value: tag })),
    );
  }

  /** Replaces the bars, and keeps the focus on that of the same tag. */
  #drawBars(bars: HTMLButtonElement[]): void {
    const { activeElement } = document;
    const isFocused =
      activeElement instanceof HTMLButtonElement && this.#details.contains(activeElement);
    byId('tags-bars', HTMLElement).replaceChildren(...bars.map((bar) => element('li', {}, bar)));
    if (isFocused) bars.find(({ value }) => value === activeElement.value)?.focus();
  }

  #note(): string {
    if (this.#isComplete && this.#counted === 0) return 'Tags appear here with the first plants.';
    if (this.#isComplete) return `${plantCount(this.#counted)}, by tag`;
    return `The first ${formatCount(this.#counted)} plants, by tag`;
  }

  #bar(tag: string, count: number, most: number): HTMLButtonElement {
    const bar = element('span', { className: 'bar-fill' });
    bar.style.setProperty('--share', String(count / most));
    const button = element(
      'button',
      { type: 'button', value: tag, className: tag === '' ? 'tag-bar no-tag' : 'tag-bar' },
      element('span', { className: 'bar-tag' }, tagText(tag)),
      element('span', { className: 'bar-count' }, formatCount(count)),
      bar,
    );
    button.ariaPressed = String(tag === this.#filter);
    button.addEventListener('click', () => this.#chose(tag));
    return button;
  }

  #chose(tag: string): void {
    this.#onFilter(tag);
    if (isBesideTable()) return;
    this.#details.open = false;
    this.#details.querySelector('summary')?.focus();
  }
}

/** Above the table, there is only room for the chart while it is used. store.css decides where it is. */
function isBesideTable(): boolean {
  return matchMedia('(width >= 60rem)').matches;
}
