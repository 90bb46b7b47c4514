/**
 * Serves the page at `/`, and the modules, styles and icons that it loads: `/web/<path>`, `/client/<path>` and
 * `/packages/<name>`. The page loads them from `/assets/<version>`, which changes with any of them, so that browsers can
 * cache them forever. It also lists the modules that it needs from the start, so that browsers request them all at once.
 *
 * A checkout needs no build: its TypeScript modules are sent without their types. The package has JavaScript modules.
 */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import type { PageSignOn } from '../../oidc/options.ts';
import { lazily, responderFor, serveDocument, type Responder } from '../response/documents.ts';
import { pageHeaders } from '../response/headers.ts';
import { pathNotFound } from '../response/problems.ts';

const sources = new URL('../../', import.meta.url);
/** With what the names of their files begin that the page loads. It folds names as the service does. */
const folders = { web: '', client: '', plants: 'folding.' };
/** The packages that modules of the page import by name. Each is a single module. */
const packages = ['uqr'];

const mediaTypes: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
  ts: 'text/javascript; charset=utf-8',
  webmanifest: 'application/manifest+json',
};

/** The URLs in the page are relative, so a path prefix works. */
export function webRoutes(app: FastifyInstance, signOn?: PageSignOn): void {
  const findFiles = lazily(readFiles);
  serveDocument(app, '/', {
    read: async () => {
      const { version, modules } = await findFiles();
      const links = modules.map((path) => `<link rel="modulepreload" href="${path}" />`).join('');
      const head = links + (signOn === undefined ? '' : settingsOf(signOn));
      const html = await readFile(new URL('web/index.html', sources), 'utf8');
      const withHead = html.replace('</head>', () => `${head}</head>`);
      const local = /(?<=\s(?:href|src)=")(?=(?:web|client|plants)\/)/g;
      return Buffer.from(withHead.replaceAll(local, `assets/${version}/`));
    },
    headers: {
      ...pageHeaders,
      ...(signOn && policyFor(signOn)),
      'content-type': 'text/html; charset=utf-8',
    },
  });
  for (const folder of [...Object.keys(folders), 'packages']) {
    // During an upgrade, a replica also gets requests for the version of another one.
    for (const prefix of ['', '/assets/:version']) {
      if (prefix === '' && folder === 'plants') continue; // this is the path of the plants themselves
      app.route<{ Params: { '*': string; version?: string } }>({
        method: ['GET', 'HEAD'],
        url: `${prefix}/${folder}/*`,
        handler: async (request, reply) => {
          const { '*': name, version } = request.params;
          const files = await findFiles();
          const respond = files.responders.get(`${folder}/${name}`);
          if (respond === undefined) throw pathNotFound();
          const isLasting = version === files.version;
          return respond(
            request,
            reply,
            isLasting ? 'public, max-age=31536000, immutable' : 'no-cache',
          );
        },
      });
    }
  }
}

/** The settings of the provider, for the page. */
function settingsOf(signOn: PageSignOn): string {
  const settings = JSON.stringify(signOn).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return `<meta name="sign-on" content="${settings}" />`;
}

/** Lets the page connect to the provider. */
function policyFor({ issuer }: PageSignOn): Record<string, string> {
  const own = "connect-src 'self'";
  const policy = pageHeaders['content-security-policy'];
  return { 'content-security-policy': policy.replace(own, `${own} ${new URL(issuer).origin}`) };
}

async function readFiles() {
  // Both by path.
  const contents = new Map<string, Buffer>();
  const responders = new Map<string, Responder>();
  const add = async (path: string, file: URL, mediaType: string) => {
    const content = await readFile(file);
    contents.set(path, content);
    const read = async () => (/\.[jt]s$/.test(path) ? scriptOf(path, String(content)) : content);
    const headers = { ...pageHeaders, 'content-type': mediaType };
    responders.set(path, responderFor({ read, headers }));
  };
  for (const name of packages) {
    const file = new URL(import.meta.resolve(name));
    await add(`packages/${name}.js`, file, 'text/javascript; charset=utf-8');
  }
  for (const [folder, start] of Object.entries(folders)) {
    const names = await readdir(new URL(folder, sources), { recursive: true });
    for (const name of names.toSorted()) {
      if (!name.startsWith(start)) continue;
      const mediaType = mediaTypes[/^(?:[\w-]+\/)*[\w-]+\.(\w+)$/.exec(name)?.[1] ?? ''];
      if (mediaType === undefined) continue;
      const path = `${folder}/${name}`;
      await add(path, new URL(path, sources), mediaType);
    }
  }
  /** The modules that the page imports from the start, directly or not. */
  const modules = new Set(contents.keys().filter((path) => /^web\/main\.[jt]s$/.test(path)));
  for (const path of modules) {
    for (const imported of importsOf(path, String(contents.get(path)))) modules.add(imported);
  }
  /** Changes if any of the files changes. */
  const hashes = [...contents].map(([path, content]) => [path, hash('sha256', content)]);
  const version = hash('sha256', JSON.stringify(hashes), 'base64url').slice(0, 16);
  return { version, modules: [...modules], responders };
}

/** The modules that a module imports before it runs. */
function importsOf(path: string, text: string): string[] {
  const imports = /^(?:import|export)\s(?!type\s)(?:[^'"();]*\sfrom\s)?['"](\.[^'"]+)['"]/gm;
  return [...text.matchAll(imports)].map(([, target = '']) =>
    new URL(target, `file:///${path}`).pathname.slice(1),
  );
}

/**
 * A module as a browser runs it: without types, and with the paths of packages, which it does not find by their names.
 * The policy of the page allows no import map, because that would be inline.
 */
async function scriptOf(path: string, source: string): Promise<Buffer> {
  const script = path.endsWith('.ts') ? await withoutTypes(source) : source;
  const root = '../'.repeat(path.split('/').length - 1);
  const packageName = /(?<=\bimport\(')[\w-]+(?='\))/g;
  return Buffer.from(script.replaceAll(packageName, (name) => `${root}packages/${name}.js`));
}

/** Node warns on the terminal that its function is experimental, and has no option to suppress only this warning. */
async function withoutTypes(source: string): Promise<string> {
  const { stripTypeScriptTypes } = await import('node:module');
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
