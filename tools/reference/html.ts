/**
 * HTML from template literals. Every value is escaped, unless it is HTML already.
 */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** False and undefined are left out, so that a part can be optional. */
type Part = Html | string | number | false | undefined | readonly Part[];

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: strings }, ...parts.map(textOf)));
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (part === false || part === undefined) return '';
  if (typeof part === 'object') return part.map(textOf).join('');
  return String(part).replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
