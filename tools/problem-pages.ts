/**
 * Generates the pages at `/problems` from docs/errors.md. `npm run openapi` writes them to src/web/problems. A test
 * compares the committed files with the generated pages.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked } from 'marked';
import { html, Html } from './html.ts';
import { plantIcon, tabIcon } from './icon.ts';
import { Page, type Section } from './markdown.ts';

export const pagesFolder = fileURLToPath(new URL('../src/web/problems', import.meta.url));
const errorsFile = fileURLToPath(new URL('../docs/errors.md', import.meta.url));

interface ProblemText {
  kind: string;
  status: number;
  title: string;
  cause: Html;
  fix: Html;
  example: string;
}

/** The pages by the names of their files. */
export function problemPages(): Map<string, string> {
  const { text, sections } = new Page(errorsFile);
  const [, intro = ''] = text.split('\n\n');
  const problems = sections.map(parseSection);
  const pages = problems.map((problem) => [`${problem.kind}.html`, problemPage(problem)] as const);
  return new Map([...pages, ['index.html', indexPage(intro, problems)]]);
}

/** The links lead to pages of the documentation, which the service does not have, so their text remains. */
const marked = new Marked({
  renderer: {
    link({ tokens }) {
      return this.parser.parseInline(tokens);
    },
  },
});

function htmlOf(markdown: string): Html {
  return new Html(marked.parse(markdown, { async: false }).trimEnd());
}

function parseSection({ heading: kind, text }: Section): ProblemText {
  const parts =
    /^\s*Type `\S+`, status \d+\.\n([^]*)```json\n([^]*)\n```\s*\*\*Fix:\*\* ([^]*)$/.exec(text);
  if (parts === null) throw new Error(`The section ${kind} has no cause, example and fix.`);
  const [, cause = '', example = '', fix = ''] = parts;
  const { status, title } = JSON.parse(example);
  return {
    kind,
    status,
    title,
    cause: htmlOf(cause),
    fix: htmlOf(fix.charAt(0).toUpperCase() + fix.slice(1)),
    example,
  };
}

function problemPage({ kind, status, title, cause, fix, example }: ProblemText): string {
  return page({
    title,
    root: '../',
    main: html`<p class="status ${classOf(status)}">${status} ${STATUS_CODES[status]}</p>
      <h1>${title}</h1>
      <p class="type"><code>${kind}</code></p>
      <section>
        <h2>Cause</h2>
        ${cause}
      </section>
      <section class="fix">
        <h2>Fix</h2>
        ${fix}
      </section>
      <section>
        <h2>Example</h2>
        <pre><code>${coloredJson(example)}</code></pre>
      </section>
      <p class="all"><a href="../problems">All problems</a></p>`,
  });
}

function indexPage(intro: string, problems: readonly ProblemText[]): string {
  return page({
    title: 'Problems',
    root: './',
    main: html`<h1>Problems</h1>
      ${htmlOf(intro)}
      <ul class="problems">
        ${problems.map(
          ({ kind, status, title }) =>
            html`<li>
              <a href="problems/${kind}">
                <span class="status ${classOf(status)}">${status}</span>
                <span>${title}</span>
                <code>${kind}</code>
              </a>
            </li> `,
        )}
      </ul>`,
  });
}

/** `root` is the relative address of the page at `/`, so that a path prefix works. */
function page({ title, root, main }: { title: string; root: string; main: Html }): string {
  const { text } = html`<!doctype html>
    <!-- Generated from docs/errors.md by "npm run openapi". Do not edit it. -->
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Plant Store</title>
        <link rel="icon" href="${tabIcon}" />
        <link rel="stylesheet" href="${root}web/theme.css" />
        <link rel="stylesheet" href="${root}web/problems.css" />
      </head>
      <body>
        <header>
          <a class="brand" href="${root}">${plantIcon} Plant Store</a>
          <a href="${root}docs">API reference</a>
        </header>
        <main>${main}</main>
      </body>
    </html>`;
  return `${text}\n`;
}

function classOf(status: number): string {
  return status < 500 ? 'of-client' : 'of-service';
}

/** Marks the strings, but not the names of members. */
function coloredJson(json: string): (Html | string)[] {
  return json
    .split(/("(?:[^"\\]|\\.)*":?)/)
    .map((part) => (part.endsWith('"') ? html`<span class="string">${part}</span>` : part));
}

if (import.meta.main) {
  rmSync(pagesFolder, { recursive: true, force: true });
  mkdirSync(pagesFolder);
  for (const [name, text] of problemPages()) writeFileSync(join(pagesFolder, name), text);
}
