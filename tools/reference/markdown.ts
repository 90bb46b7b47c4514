/**
 * Sections of the documentation (docs/reference) as HTML. They are the only source of their texts.
 */
import { Marked, type Token } from 'marked';
import { Html } from './html.ts';
import { codeHtml } from './code.ts';

const marked = new Marked({
  renderer: {
    code: ({ text }) => codeHtml(text).text,
    /** Only the problems are on this page. Other links keep their text. */
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      const [, kind] = /^errors\.md#(.+)$/.exec(href) ?? [];
      return kind === undefined ? text : `<a href="#${kind}">${text}</a>`;
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
