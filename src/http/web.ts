/**
 * Serves the page at `/`, a page about each kind of problem at `/problems/<kind>`, and the modules and styles that
 * they load: `/web/<file>` and `/client/<file>`. A checkout needs no build: its TypeScript modules are sent without
 * their types. The package has JavaScript modules.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import type { PageSignOn } from '../oidc/options.ts';
import { serveDocument, serveDocuments, type Document } from './documents.ts';
import { problemResponses } from './problems.ts';

/** The pages need nothing but the files and the API of their own origin, and the identity provider if there is one. */
export const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

const mediaTypes: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  ts: 'text/javascript; charset=utf-8',
};

/** The URLs in the pages are relative, so a path prefix works. */
export function webRoutes(app: FastifyInstance, signOn?: PageSignOn): void {
  const page = htmlFile('index.html');
  serveDocument(app, { path: '/', ...(signOn === undefined ? page : withSignOn(page, signOn)) });
  serveDocument(app, { path: '/problems', ...htmlFile('problems/index.html') });
  serveDocuments(app, '/problems', async (kind) =>
    Object.hasOwn(problemResponses, kind) ? htmlFile(`problems/${kind}.html`) : undefined,
  );
  for (const folder of ['web', 'client']) serveDocuments(app, `/${folder}`, filesOf(folder));
}

function htmlFile(path: string): Document {
  return {
    read: () => readFile(new URL(`../web/${path}`, import.meta.url)),
    headers: { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' },
  };
}

/** The page with the settings of its provider, to which it can connect. */
function withSignOn({ read, headers }: Document, signOn: PageSignOn): Document {
  const policy = pageHeaders['content-security-policy'];
  const settings = JSON.stringify(signOn).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const meta = `<meta name="sign-on" content="${settings}" />`;
  return {
    read: async () =>
      Buffer.from((await read()).toString().replace('</head>', () => `${meta}</head>`)),
    headers: {
      ...headers,
      'content-security-policy': policy.replace(
        "connect-src 'self'",
        `connect-src 'self' ${new URL(signOn.issuer).origin}`,
      ),
    },
  };
}

/** Finds the files of a folder beside this one by name. The folder is listed once, at the first request. */
function filesOf(folder: string): (name: string) => Promise<Document | undefined> {
  const url = new URL(`../${folder}/`, import.meta.url);
  let names: Promise<string[]> | undefined;
  return async (name) => {
    const [, extension = ''] = /^[\w-]+\.(\w+)$/.exec(name) ?? [];
    const mediaType = mediaTypes[extension];
    if (mediaType === undefined) return undefined;
    names ??= readdir(url).catch((error: unknown) => {
      names = undefined; // the next request tries again
      throw error;
    });
    if (!(await names).includes(name)) return undefined;
    return {
      read: () => (extension === 'ts' ? readModule : readFile)(new URL(name, url)),
      headers: { ...pageHeaders, 'content-type': mediaType },
    };
  };
}

async function readModule(url: URL): Promise<Buffer> {
  const { stripTypeScriptTypes } = await import('node:module');
  const source = await readFile(url, 'utf8');
  return Buffer.from(withoutWarning(() => stripTypeScriptTypes(source)));
}

/** Node warns on the terminal that its function is experimental, and has no option to prevent only that. */
function withoutWarning<Result>(work: () => Result): Result {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}
