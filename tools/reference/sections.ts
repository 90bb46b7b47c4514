/**
 * The parts of the reference around the operations.
 */
import { html, type Html } from './html.ts';
import { addressHtml, codeHtml, copyableHtml, samplesHtml } from './code.ts';
import { problemKinds, type ProblemKind } from '../../src/problem.ts';
import { blocksOf, type Block, type Section } from '../markdown.ts';
import { problemOf } from '../problems.ts';
import { htmlOf, inlineHtml } from './markdown.ts';
import type { Header } from './openapi.ts';
import { sampleAddress } from './samples.ts';

export const startHtml = html`<section id="token" class="operation" aria-labelledby="token-title">
    <div class="about">
      <h2 id="token-title">Get a token</h2>
      <p>
        Every operation on plants needs a token. Ask whoever runs the service for one, and set it in
        a variable: the samples read it from there. If you run the service yourself, create a token
        with <code>npx plant-store token create</code>.
      </p>
      <p>
        A token grants one or more scopes: <code>plants:read</code>, <code>plants:write</code> and
        <code>shares:write</code>. Each operation names the scope that it requires. A token can also
        expire.
      </p>
      <p>
        <a href="./">The page of the service</a> shows what your token grants, and you can add, find
        and delete plants there.
      </p>
    </div>
    <div class="example">${copyableHtml("export PLANT_STORE_TOKEN='plant_...'")}</div>
  </section>
  <section id="requests" class="operation" aria-labelledby="requests-title">
    <div class="about">
      <h2 id="requests-title">Send requests</h2>
      <p>
        Send requests to <code>${addressHtml}</code> with the token in the header
        <code>Authorization</code>. Never put a token into a URL.
      </p>
      <p>
        A body is JSON in UTF-8 with <code>Content-Type: application/json</code>. An unknown field
        or parameter is refused, so a typo loses no data.
      </p>
      <p>
        To generate a client, use <a href="openapi.json">openapi.json</a>. The samples need no
        package: they run with curl, with Node, and with Python 3.
      </p>
    </div>
    <div class="example">
      ${copyableHtml(`curl ${sampleAddress}/token \\\n  -H "Authorization: Bearer $PLANT_STORE_TOKEN"`)}
    </div>
  </section>`;

/** The loop over all pages, with the programs of docs/reference/api.md. They show two plants; here they get large pages. */
export function pagingHtml(id: string, section: Section): Html {
  const sample = (language: string) =>
    programOf(section, language).replace('limit=1&', 'limit=1000&');
  const samples = { curl: sample('sh'), JavaScript: sample('js'), Python: sample('python') };
  return html`<section id="${id}" class="operation" aria-labelledby="${id}-title">
    <div class="about">
      <h2 id="${id}-title">${section.heading}</h2>
      <p>
        A list without <code>limit</code> has all plants. With <code>limit</code>, the header
        <code>Link</code> has the URL of the next page, with all other parameters. If there is no
        <code>Link</code>, this is the last page.
      </p>
      <p>
        The URL is relative, unless the service has a public address: resolve it against the URL of
        the request. Use a <code>limit</code> of 1000.
      </p>
      <p>
        A list is not a snapshot. A plant that exists before, during and after the list is in it
        exactly once.
      </p>
    </div>
    <div class="example">${samplesHtml(id, samples)}</div>
  </section>`;
}

/** The client, with the program of docs/reference/client.md. */
export function clientHtml(id: string, section: Section): Html {
  return html`<section id="${id}" class="operation" aria-labelledby="${id}-title">
    <div class="about">
      <h2 id="${id}-title">JavaScript client</h2>
      <p>
        The package <code>plant-store-client</code> is a client for Node and browsers, with types.
        It has a method for each operation.
      </p>
      <p>
        The client follows the pages of a list and throws typed errors. It repeats a request only if
        that is safe.
      </p>
    </div>
    <div class="example">${copyableHtml(programOf(section, 'js'))}</div>
  </section>`;
}

/** The program that readers save to a file: its block has the name of the file after the language. */
function programOf({ heading, tokens }: Section, language: string): string {
  const isProgram = (block: Block) => block.language === language && block.file !== undefined;
  const program = blocksOf(tokens).find(isProgram);
  if (program === undefined) throw new Error(`"${heading}" has no program in ${language}.`);
  return program.text;
}

export function proseHtml(id: string, { heading, tokens }: Section): Html {
  return html`<section id="${id}" class="prose" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${heading}</h2>
    ${htmlOf(tokens)}
  </section>`;
}

export function headersHtml(id: string, headers: Record<string, Header>): Html {
  return html`<section id="${id}" class="prose" aria-labelledby="${id}-title">
    <h2 id="${id}-title">Response headers</h2>
    <dl class="fields">
      ${Object.entries(headers).map(
        ([name, { description, example }]) =>
          html`<div>
            <dt><code>${name}</code></dt>
            <dd>${inlineHtml(description)} Example: <code>${String(example)}</code></dd>
          </div>`,
      )}
    </dl>
  </section>`;
}

/** Each problem of docs/reference/errors.md, folded, with its cause, its example and its fix. */
export function problemsHtml(id: string, problems: Section[]): Html {
  return html`<section id="${id}" class="prose" aria-labelledby="${id}-title">
    <h2 id="${id}-title">Problems</h2>
    <p>
      Every error is a problem document (RFC 9457) with <code>type</code>, <code>title</code>,
      <code>status</code> and <code>detail</code>. <code>detail</code> describes what is wrong with
      this request and how to fix it. For invalid input, <code>errors</code> lists the faults. Base
      your code on the last part of <code>type</code>, or on the status if the type is unknown.
    </p>
    ${problems.map(problemHtml)}
  </section>`;
}

function problemHtml(section: Section): Html {
  const { heading: kind, tokens } = section;
  // The first paragraph is the status, which the summary has.
  const [, ...rest] = tokens.filter(({ type }) => type !== 'space');
  const text = rest.filter(({ type }) => type !== 'code');
  const { status, title } = problemKinds[kind as ProblemKind]; // a test compares the headings with all kinds
  return html`<details class="problem">
    <summary>
      <span class="status s${String(status).charAt(0)}">${status}</span>
      <span>${title} <code>${kind}</code></span>
    </summary>
    <div id="${kind}">${htmlOf(text)} ${codeHtml(JSON.stringify(problemOf(section), null, 2))}</div>
  </details>`;
}
