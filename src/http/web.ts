/**
 * Serves the page at `/`, and the modules and styles that it loads: `/web/<path>` and `/client/<path>`, from below
 * `/assets/<version>`. A checkout needs no build: its TypeScript modules are sent without their types. The package has
 * JavaScript modules.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import type { PageSignOn } from '../oidc/options.ts';
import { mediaTypeOf, readAssets, type Assets } from './assets.ts';
import { serveDocument, serveDocuments, type Document } from './documents.ts';
import { pageHeaders } from './headers.ts';

/** The URLs in the page are relative, so a path prefix works. */
export function webRoutes(app: FastifyInstance, signOn?: PageSignOn): void {
  let assets: Promise<Assets> | undefined;
  const findAssets = () =>
    (assets ??= readAssets().catch((error: unknown) => {
      assets = undefined; // the next request tries again
      throw error;
    }));
  const page = withAssets(
    {
      read: () => readFile(new URL('../web/index.html', import.meta.url)),
      headers: { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' },
    },
    findAssets,
  );
  serveDocument(app, { path: '/', ...(signOn === undefined ? page : withSignOn(page, signOn)) });
  const version = async () => (await findAssets()).version;
  for (const folder of ['web', 'client']) {
    serveDocuments(app, `/${folder}`, filesOf(folder));
    // During an upgrade, a replica also gets requests for the version of another one.
    serveDocuments(app, `/assets/:version/${folder}`, filesOf(folder), version);
  }
}

/** The page with the addresses of its modules and styles. */
function withAssets({ read, headers }: Document, find: () => Promise<Assets>): Document {
  return {
    read: async () => {
      const { version, modules } = await find();
      const links = modules.map((path) => `<link rel="modulepreload" href="${path}" />`).join('');
      const html = (await read()).toString().replace('</head>', () => `${links}</head>`);
      return Buffer.from(
        html.replaceAll(/(?<=\s(?:href|src)=")(?=(?:web|client)\/)/g, `assets/${version}/`),
      );
    },
    headers,
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

/** Finds the files of a folder beside this one by their path in it. The folder is listed once, at the first request. */
function filesOf(folder: string): (name: string) => Promise<Document | undefined> {
  const url = new URL(`../${folder}/`, import.meta.url);
  let names: Promise<string[]> | undefined;
  return async (name) => {
    const mediaType = mediaTypeOf(name);
    if (mediaType === undefined) return undefined;
    names ??= readdir(url, { recursive: true }).catch((error: unknown) => {
      names = undefined; // the next request tries again
      throw error;
    });
    if (!(await names).includes(name)) return undefined;
    return {
      read: () => (name.endsWith('.ts') ? readModule : readFile)(new URL(name, url)),
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
