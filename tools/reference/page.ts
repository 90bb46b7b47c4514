/**
 * Generates the reference at `/docs` from openapi.json and docs/reference: for the package when it is built, in a checkout at
 * the first request.
 *
 * The page works without its script, which adds the choice of a language, buttons to copy code and the address of
 * the service. All URLs are relative, so a path prefix works.
 */
import { readFileSync } from 'node:fs';
import { Page } from '../markdown.ts';
import { html, type Html } from './html.ts';
import { plantIcon, tabIcon } from './icon.ts';
import { inlineHtml } from './markdown.ts';
import { parseOpenApi, type OpenApi, type Operation } from './openapi.ts';
import { methodHtml, operationHtml } from './operation.ts';
import {
  clientHtml,
  headersHtml,
  pagingHtml,
  problemsHtml,
  proseHtml,
  startHtml,
} from './sections.ts';

export function referencePage(): string {
  const document = parseOpenApi(readFileSync(fileOf('openapi.json'), 'utf8'));
  const groups = groupsOf(document);
  const api = new Page(fileOf('docs/reference/api.md'));
  const client = new Page(fileOf('docs/reference/client.md'));
  const errors = new Page(fileOf('docs/reference/errors.md'));
  return html`<!doctype html>
    <html lang="en" data-language="curl">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>API reference · Plant Store</title>
        <link rel="icon" href="${tabIcon}" />
        <link rel="stylesheet" href="web/styles/theme.css" />
        <link rel="stylesheet" href="web/styles/reference.css" />
        <script type="module" src="web/reference.ts"></script>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="bar">
          <a class="brand" href="./">${plantIcon} Plant Store</a>
          <a href="openapi.json">openapi.json</a>
        </header>
        <div class="columns">
          <nav aria-label="Contents">${contentsHtml(groups)}</nav>
          <main id="content" tabindex="-1">
            <h1>API reference <small>${document.info.version}</small></h1>
            <p class="lead">${inlineHtml(document.info.description)}</p>
            ${startHtml} ${groups.map(groupHtml)}
            ${pagingHtml('paging', api.section('Get every page'))}
            ${clientHtml('client', client.section('Create, list, change and delete'))}
            ${proseHtml('retries', api.section('Retries'))}
            ${proseHtml('limits', api.section('Limits'))}
            ${headersHtml('headers', document.components.headers)}
            ${problemsHtml('problems', errors.sections)}
          </main>
        </div>
        <p id="status" class="only-heard" role="status"></p>
      </body>
    </html> `.text;
}

interface Group {
  name: string;
  description: string;
  operations: { path: string; method: string; operation: Operation }[];
}

/** The operations by their tag, in the order of the tags. */
function groupsOf({ tags, paths }: OpenApi): Group[] {
  const operations = Object.entries(paths).flatMap(([path, atPath]) =>
    Object.entries(atPath).map(([method, operation]) => ({ path, method, operation })),
  );
  return tags.map(({ name, description }) => ({
    name,
    description,
    operations: operations.filter(({ operation }) => operation.tags.includes(name)),
  }));
}

function groupHtml({ name, description, operations }: Group): Html {
  return html`<section id="${name}" aria-labelledby="${name}-title">
    <h2 id="${name}-title">${titleOf(name)}</h2>
    <p>${inlineHtml(description)}</p>
    ${operations.map(({ path, method, operation }) => operationHtml(path, method, operation))}
  </section>`;
}

/** On a narrow screen, the style folds it. On a wide one, it scrolls, and the keyboard must reach it to do that. */
function contentsHtml(groups: Group[]): Html {
  return html`<details class="contents" tabindex="0">
    <summary>Contents</summary>
    <ul>
      <li><a href="#token">Get a token</a></li>
      <li><a href="#requests">Send requests</a></li>
      ${groups.map(
        ({ name, operations }) =>
          html`<li>
            <a href="#${name}">${titleOf(name)}</a>
            <ul>
              ${operations.map(
                ({ method, operation: { operationId, summary } }) =>
                  html`<li><a href="#${operationId}">${summary} ${methodHtml(method)}</a></li>`,
              )}
            </ul>
          </li>`,
      )}
      <li><a href="#paging">Get every page</a></li>
      <li><a href="#client">JavaScript client</a></li>
      <li><a href="#retries">Retries</a></li>
      <li><a href="#limits">Limits</a></li>
      <li><a href="#headers">Response headers</a></li>
      <li><a href="#problems">Problems</a></li>
    </ul>
  </details>`;
}

function titleOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function fileOf(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
