/**
 * A reporter that lists the skipped tests at the end, with the reasons.
 */
import type { TestEvent } from 'node:test/reporters';

export default async function* listSkips(
  events: AsyncIterable<TestEvent>,
): AsyncGenerator<string, void> {
  const skipped = new Map<string, string[]>();
  for await (const { type, data } of events) {
    if (type !== 'test:pass' || data.skip === undefined || data.skip === false) continue;
    const reason = String(data.skip);
    const names = skipped.get(reason) ?? [];
    names.push(data.name);
    skipped.set(reason, names);
  }
  const count = [...skipped.values()].reduce((sum, names) => sum + names.length, 0);
  if (count === 0) return yield '\nNo test was skipped.\n';
  yield `\n${count} ${count === 1 ? 'test was' : 'tests were'} skipped:\n`;
  for (const [reason, names] of skipped) {
    yield `\n  ${reason}\n${names.map((name) => `    ${name}\n`).join('')}`;
  }
}
