/**
 * Commands one after another, whose output a snapshot has.
 */
import type { TestContext } from 'node:test';
import { makeToken } from '../../src/access/token.ts';
import { printable } from '../../src/client/printable.ts';
import { runHere } from '../support/command.ts';

interface Place {
  folder: string;
  env?: Record<string, string>;
  /** What a line calls <url>. */
  address?: string;
  /** What a line calls <token>, until a command prints another one. */
  token?: string;
}

/**
 * A template tag that runs a command per line, and compares what they print, on standard error after "2>". What follows
 * "<" is typed on a terminal, ^D if nothing is. What follows "<<" comes through a pipe.
 */
export function session(t: TestContext, place: Place) {
  const { folder, env = {}, address = '<url>' } = place;
  let [token, tokenId] = [place.token ?? makeToken(1), ''];

  const runLine = async (line: string): Promise<string> => {
    const [, command = '', source, text = ''] =
      /^(.*?)(?: (<<?) (.*))?$/s.exec(
        line
          .replaceAll('<token>', token)
          .replaceAll('<token id>', tokenId)
          .replaceAll('<url>', address),
      ) ?? [];
    const args = command.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
    const isTerminal = source === '<';
    const typed = text === '^D' ? '' : `${text}\n`;
    const input = isTerminal ? typed : text.replaceAll('\\n', '\n');
    const { status, stdout, stderr } = await runHere(args, { env, cwd: folder, input, isTerminal });
    token = /plant_\w{58}/.exec(stdout)?.[0] ?? token;
    tokenId = /\w{9}-[\da-f]{16}/.exec(stderr)?.[0] ?? tokenId;
    const errors = stderr.replace('(add --help for usage)\n', '').replaceAll(/^(?!$)/gm, '2> ');
    return `$ ${printable(line)}\n${masked(errors + stdout)}[${status}]\n`;
  };
  const masked = (text: string) =>
    text
      .replaceAll(folder, '~')
      .replaceAll(address, '<url>')
      .replaceAll(/plant_\w{58}/g, '<token>')
      .replaceAll(/\w{9}-[\da-f]{16}/g, '<token id>')
      .replaceAll(/plant-store on [^\s"]+/g, 'plant-store on <host>')
      .replaceAll(
        /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d\.\d{3})?(?:Z|[+-]\d\d:\d\d)|\d{8}T\d{9}Z/g,
        '<time>',
      )
      .replaceAll(/[\da-f]{64}/g, '<sha256>')
      .replaceAll(/"request":"[^"]+"/g, '"request":"<id>"')
      .replaceAll(/(?<=--key )[\da-f-]{32,36}/g, '<key>');

  return async (parts: TemplateStringsArray, ...values: unknown[]): Promise<void> => {
    const lines = String.raw({ raw: parts }, ...values);
    let shown = '';
    for (const line of lines.trim().split(/\n\s*/)) shown += await runLine(line);
    t.assert.snapshot(shown.trimEnd(), { serializers: [(value: string) => value] });
  };
}
