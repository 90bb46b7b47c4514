/**
 * The modules and styles of the page, at addresses that contain a version of all of them: `/assets/<version>/web/…`.
 * A browser asks for each only once, and for all that the page needs from the start at once.
 */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';

const sources = new URL('../', import.meta.url);

export interface Assets {
  /** Changes if any of the files changes. */
  version: string;
  /** The paths of the modules that the page imports from the start, directly or not. */
  modules: string[];
}

const mediaTypes: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  ts: 'text/javascript; charset=utf-8',
};

/** The media type of a file at this path; undefined if it is not served. */
export function mediaTypeOf(name: string): string | undefined {
  return mediaTypes[/^(?:[\w-]+\/)*[\w-]+\.(\w+)$/.exec(name)?.[1] ?? ''];
}

export async function readAssets(): Promise<Assets> {
  const texts = new Map<string, string>();
  for (const folder of ['web', 'client']) {
    const names = await readdir(new URL(folder, sources), { recursive: true });
    for (const name of names.filter((each) => mediaTypeOf(each) !== undefined).toSorted()) {
      texts.set(`${folder}/${name}`, await readFile(new URL(`${folder}/${name}`, sources), 'utf8'));
    }
  }
  const modules = new Set(texts.keys().filter((path) => /^web\/main\.[jt]s$/.test(path)));
  for (const path of modules) {
    for (const imported of importsOf(path, texts.get(path) ?? '')) modules.add(imported);
  }
  const version = hash('sha256', JSON.stringify([...texts]), 'base64url').slice(0, 16);
  return { version, modules: [...modules] };
}

/** The modules that a module imports before it runs. */
function importsOf(path: string, text: string): string[] {
  const imports = /^(?:import|export)\s(?!type\s)(?:[^'"();]*\sfrom\s)?['"](\.[^'"]+)['"]/gm;
  return [...text.matchAll(imports)].map(([, target = '']) =>
    new URL(target, `file:///${path}`).pathname.slice(1),
  );
}
