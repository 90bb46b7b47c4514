/**
 * Sections of the documentation (docs/*.md) as HTML. They are the only source of their texts.
 */
import { Marked, type Token } from 'marked';
import { Html } from '../html.ts';
import { codeHtml } from './code.ts';

const marked = new Marked({
  renderer: {
    code: ({ text }) => codeHtml(text).text,
    /** Only pages of the service have an address here: the problems. Other links keep their text. */
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      const [, kind] = /^errors\.md#(.+)$/.exec(href) ?? [];
      return kind === undefined ? text : `<a href="problems/${kind}">${text}</a>`;
    },
  },
});

/** A text of openapi.json, which has Markdown inside a paragraph. */
export function inlineHtml(text: string): Html {
  return new Html(marked.parseInline(text, { async: false }));
}

export function htmlOf(tokens: Token[]): Html {
  return new Html(marked.parser(tokens));
}

export interface Section {
  heading: string;
  tokens: Token[];
}

/** The parts below the headings of the second level. */
export function sectionsOf(markdown: string): Section[] {
  const sections: Section[] = [];
  for (const token of marked.lexer(markdown)) {
    if (token.type === 'heading' && token['depth'] === 2) {
      sections.push({ heading: String(token['text']), tokens: [] });
    } else {
      sections.at(-1)?.tokens.push(token);
    }
  }
  return sections;
}

export function sectionOf(markdown: string, heading: string): Section {
  const section = sectionsOf(markdown).find((each) => each.heading === heading);
  if (section === undefined) throw new Error(`There is no heading "${heading}".`);
  return section;
}
