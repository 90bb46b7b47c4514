/**
 * The statements of a migration file. Each is sent on its own, because some cannot run in a transaction.
 */

export interface MigrationStep {
  text: string;
  /** Whether it is repeated until it changes no row: this changes a large table in small transactions. */
  repeats: boolean;
  /** Whether it waits for other transactions without blocking later ones. */
  isConcurrent: boolean;
  /** The index that it creates concurrently. If the statement is aborted, an invalid index remains. */
  index: string | undefined;
}

/** The comment that marks the next statement as one to repeat. */
const repeatComment = /^\s*-- Repeat until .*$/gm;

/**
 * Splits at semicolons and removes comments, so no literal can contain a semicolon or two hyphens. Throws if a
 * concurrent statement cannot be repeated.
 */
export function parseSteps(sql: string): MigrationStep[] {
  return sql
    .replace(repeatComment, 'REPEAT')
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
    .map(parseStep);
}

const createConcurrently =
  /^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+(\w+)\s/i;
const dropConcurrently = /^DROP\s+INDEX\s+CONCURRENTLY\s+IF\s+EXISTS\s/i;

function parseStep(statement: string): MigrationStep {
  const text = statement.replace(/^REPEAT\s+/, '');
  const isConcurrent = /^(?:CREATE|DROP)\s[^(]*\bCONCURRENTLY\b/i.test(text);
  const [, index] = createConcurrently.exec(text) ?? [];
  const isRepeatable = index !== undefined || dropConcurrently.test(text);
  if (isConcurrent && !isRepeatable) {
    throw new Error(
      `A concurrent statement needs IF [NOT] EXISTS, so that it can be repeated: ${text}`,
    );
  }
  return { text, repeats: text !== statement, isConcurrent, index };
}
