/**
 * The few helpers that the page needs on top of the DOM. Text enters it here, and as text only: the content security
 * policy refuses markup from strings.
 */
import { printable } from '../../client/printable.ts';

/** A text of the page, or of a user: control and format characters in it are shown. */
export type Text = string | Sentence;

/** Words of the page around texts, each of which is isolated: its direction does not change the order of the words. */
interface Sentence {
  words: readonly string[];
  /** Each follows the word at its index. */
  texts: readonly Text[];
}

export function sentence(words: readonly string[], ...texts: Text[]): Sentence {
  return { words, texts };
}

export function joined(texts: readonly Text[], separator: string): Sentence {
  return { words: texts.map((_, at) => (at === 0 ? '' : separator)), texts };
}

function nodesOf(text: Text): (Node | string)[] {
  if (typeof text === 'string') return [printable(text)];
  return text.words.flatMap((word, at) => {
    const inner = text.texts[at];
    return inner === undefined ? [word] : [word, element('bdi', {}, inner)];
  });
}

/** Replaces what the element contains. */
export function fill(place: Element, text: Text): void {
  place.replaceChildren(...nodesOf(text));
}

/** The element of index.html with this id. Throws if there is none of this type. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  return find(document, `#${id}`, type);
}

/** The first descendant that matches. Throws if there is none of this type. */
export function find<T extends HTMLElement>(
  place: ParentNode,
  selector: string,
  type: new () => T,
): T {
  const found = place.querySelector(selector);
  if (found instanceof type) return found;
  throw new Error(`index.html has no ${type.name} ${selector}`);
}

/** Creates an element with these properties and children. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Partial<HTMLElementTagNameMap[Tag]> = {},
  ...children: (Node | Text)[]
): HTMLElementTagNameMap[Tag] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.flatMap((child) => (child instanceof Node ? [child] : nodesOf(child))));
  return made;
}

/** Runs the handler when the button is pressed. A handler that fails ends up in `unhandledrejection`. */
export function onPress(id: string, handler: () => void | Promise<void>): void {
  byId(id, HTMLButtonElement).addEventListener('click', () => void handler());
}

/** Shows or hides the element with this id. If it had the focus, the table gets it. */
export function show(id: string, visible = true): void {
  const target = byId(id, HTMLElement);
  const losesFocus = !visible && target.contains(document.activeElement);
  target.hidden = !visible;
  if (!losesFocus) return;
  queueMicrotask(() => {
    // What takes the place of the element may have the focus already.
    const { activeElement } = document;
    if (activeElement === document.body || target.contains(activeElement)) focusTable();
  });
}

const listeners: (() => void)[] = [];

/** Draws a part of the page again after each change of what the page shows. */
export function onChange(draw: () => void): void {
  listeners.push(draw);
}

/** Call it when something has changed that other parts of the page show too. */
export function changed(): void {
  for (const draw of listeners) draw();
}

/** Returns a function that draws in the next frame, once for all calls until then. */
export function inNextFrame(draw: () => void): () => void {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      draw();
    });
  };
}

/** Gives the focus to the table, or to the page without one. */
export function focusTable(): void {
  const grid = byId('grid', HTMLElement);
  (grid.checkVisibility() ? grid : byId('main', HTMLElement)).focus();
}

export function setText(id: string, text: Text): void {
  fill(byId(id, HTMLElement), text);
}

/** Fills a list of facts, as pairs of a term and its description. */
export function setFacts(id: string, facts: Record<string, Text>): void {
  byId(id, HTMLElement).replaceChildren(
    ...Object.entries(facts).map(([term, description]) =>
      element('div', {}, element('dt', {}, term), element('dd', {}, description)),
    ),
  );
}

/** A parameter in the address after `#`, which browsers do not send to the service. An empty one counts as none. */
export function hashParameter(name: string): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get(name) || undefined;
}

/** Removes a parameter from the address after `#`, and leaves the others. The back button does not bring it back. */
export function withoutParameter(name: string): void {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (!parameters.has(name)) return;
  parameters.delete(name);
  const hash = parameters.size === 0 ? '' : `#${parameters}`;
  history.replaceState(null, '', location.pathname + location.search + hash);
}

/** Copies a text. Returns false if the browser does not allow it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithoutHttps(text);
  }
}

/** The service of a shop often has no HTTPS on its own network. Browsers then allow only the older way. */
function copyWithoutHttps(text: string): boolean {
  const give = (event: ClipboardEvent) => {
    event.preventDefault();
    event.clipboardData?.setData('text/plain', text);
  };
  document.addEventListener('copy', give);
  const isCopied = document.execCommand('copy');
  document.removeEventListener('copy', give);
  return isCopied;
}
