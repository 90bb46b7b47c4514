import { basename, dirname } from 'node:path';

/**
 * What a person types to run this program: `plant-store` if it was found in the path, as after a global
 * installation. In a checkout or a project, only npx finds it.
 */
export const program = isInPath(process.argv[1] ?? '') ? 'plant-store' : 'npx plant-store';

/** The text as one word of a command. Plain text stays as it is. */
export function shellQuoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function isInPath(started: string): boolean {
  // npx and npm also find it in a path, but only while they run.
  return basename(started) === 'plant-store' && basename(dirname(started)) !== '.bin';
}
