/**
 * The statements of a migration file. Each is sent by itself, so that some can run outside a transaction.
 */

/** A statement of a migration, and how it is run. */
export interface MigrationStep {
  text: string;
  /** Whether it is run again until it changes no row: a change of a large table in small transactions. */
  repeats: boolean;
  /** It waits for other transactions without blocking those that come after it. */
  isConcurrent: boolean;
  /** The index that it makes in that way: if it is aborted, one is left that is not valid. */
  index: string | undefined;
}

/** A comment before a statement. */
const repeatMark = /^\s*-- Repeat until .*$/gm;

/**
 * In order, without comments. No text in one has a semicolon or two hyphens. Throws for one that cannot be
 * repeated.
 */
export function parseSteps(sql: string): MigrationStep[] {
  return sql
    .replace(repeatMark, 'REPEAT')
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
    .map(stepOf);
}

const createConcurrently =
  /^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+(\w+)\s/i;
const dropConcurrently = /^DROP\s+INDEX\s+CONCURRENTLY\s+IF\s+EXISTS\s/i;

function stepOf(statement: string): MigrationStep {
  const text = statement.replace(/^REPEAT\s+/, '');
  const isConcurrent = /^(?:CREATE|DROP)\s[^(]*\bCONCURRENTLY\b/i.test(text);
  const [, index] = createConcurrently.exec(text) ?? [];
  const isRepeatable = index !== undefined || dropConcurrently.test(text);
  if (isConcurrent && !isRepeatable) {
    throw new Error(`It needs IF [NOT] EXISTS, because it can be repeated: ${text}`);
  }
  return { text, repeats: text !== statement, isConcurrent, index };
}
