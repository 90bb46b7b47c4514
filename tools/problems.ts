/**
 * The examples of docs/reference/errors.md. A test compares all of them with real responses.
 */
import { problemType } from '../src/http/response/problems.ts';
import { problemKinds, type ProblemKind } from '../src/problem.ts';
import { blocksOf, type Section } from './markdown.ts';

/** The problem document that a section shows: as JSON, or only its detail, as all else follows from the kind. */
export function problemOf({ heading, tokens }: Section): object {
  const [{ language, text } = { language: '', text: '' }, ...others] = blocksOf(tokens);
  if (others.length > 0) throw new Error(`${heading} has more than one example`);
  if (language === 'json') return JSON.parse(text);
  const kind = heading as ProblemKind; // a test compares the headings with all kinds
  const { status, title } = problemKinds[kind];
  return { type: problemType(kind, ''), title, status, detail: text.trim() };
}
