/**
 * Checks that are statements: those of a file, and those of doctor.sql, which both engines have.
 */
import { readFileSync } from 'node:fs';
import type { Check, Finding } from '../shared/finding.ts';
import { statementOf, type Query } from './statement.ts';

const commonFile = new URL('doctor.sql', import.meta.url);
/** The name of a check and what it looks at, then its statement. */
const pattern = /^-- ([\w-]+): (.*)\n([^]*?);$/gm;

export function sqlChecks(
  file: URL,
  read: (...query: Query<Finding>) => Promise<Finding[]>,
): Check[] {
  const text = readFileSync(file, 'utf8') + readFileSync(commonFile, 'utf8');
  return [...text.matchAll(pattern)].map(([, name = '', about = '', statement = '']) => {
    const values = statement.includes('$1') ? [Date.now()] : [];
    const query: Query<Finding> = [statementOf<Finding>(statement), values];
    return [name, about, async () => (await read(...query))[0] ?? ['skipped', 'there is no row']];
  });
}
