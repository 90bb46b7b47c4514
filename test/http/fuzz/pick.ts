import * as fc from 'fast-check';

/** One of these texts, which have white space between them. */
export function oneOf(texts: string): fc.Arbitrary<string> {
  return fc.constantFrom(...texts.trim().split(/\s+/));
}

/** One of these lines. */
export function oneLine(texts: string): fc.Arbitrary<string> {
  return fc.constantFrom(
    ...texts
      .trim()
      .split('\n')
      .map((line) => line.trim()),
  );
}

/** The first, and once in `weight` times the second. */
export function rarely<T>(
  usual: fc.Arbitrary<T>,
  rare: fc.Arbitrary<T>,
  weight = 8,
): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: rare });
}
