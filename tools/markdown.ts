/**
 * Reads examples, tables, headings and links from the Markdown of the documentation.
 */
import { readFileSync } from 'node:fs';
import { lexer, walkTokens, type Token, type Tokens } from 'marked';
import { anchorOf } from './anchor.ts';

/**
 * Placeholders for output that differs between runs. They replace it both in an example and in its actual
 * output, so an example can show either.
 */
const placeholders: [pattern: RegExp, placeholder: string][] = [
  [/plant_[0-9A-Za-z]{49,58}/g, '<token>'],
  [/\b(?:[0-9A-Za-z]{9}-)?[0-9a-f]{16}\b/g, '<token id>'],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<request id>'],
  [/^Date: .*$/gm, 'Date: <date>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\dZ/g, '<minute>'],
  [/\b\d{8}T\d{9}Z|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/^\d\d:\d\d:\d\d /gm, '<time> '],
  [/\bt=\d+$/gm, 't=<seconds>'],
  [/^retry-after: \d+$/gm, 'retry-after: <seconds>'],
  [/ in \d+ s\./g, ' in <seconds> s.'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:8080'],
  // Progress: a page shows the last state of the bar on a terminal, and without one there is none.
  [/^(?:(?:Copying|Restoring|Comparing|Verifying) \[.*\n)+\n?/gm, ''],
  [/\b[0-9a-f]{64}\b/g, '<digest>'],
  [/postgres:\/\/[^\s@]+@[^\s/]+\/\w+/g, 'postgres://plants@127.0.0.1/plants'],
  [/[\r\u{feff}]/gu, ''], // a terminal shows neither
];

/** Ids of tokens: an example can use the output of an earlier one. */
export const tokenIds = /\b(?:[0-9A-Za-z]{9}-)?[0-9a-f]{16}\b/g;

export function normalise(text: string): string {
  const normalised = placeholders.reduce(
    (rest, [pattern, placeholder]) => rest.replaceAll(pattern, placeholder),
    text,
  );
  return normalised.trimEnd();
}

export interface Block {
  language: string;
  /** The file that the reader saves the block to: the name after the language. */
  file: string | undefined;
  text: string;
  /** The line of its first line in the file; in a list, the one after the list's first. */
  line: number;
}

export interface Example {
  command: string;
  /** Undefined if the page does not show it. */
  output: string | undefined;
  line: number;
}

/** What is below a heading of the second level. */
export interface Section {
  heading: string;
  tokens: Token[];
  text: string;
}

export class Page {
  readonly text: string;
  readonly #tokens: Token[];

  constructor(file: string | URL) {
    this.text = readFileSync(file, 'utf8');
    this.#tokens = lexer(this.text);
  }

  get blocks(): Block[] {
    return blocksOf(this.#tokens);
  }

  get examples(): Example[] {
    return this.blocks.flatMap((block) => {
      if (block.language === 'sh' && block.file === undefined) return commandsOf(block);
      return block.language === 'console' ? sessionOf(block) : [];
    });
  }

  get sections(): Section[] {
    const sections: Section[] = [];
    for (const token of this.#tokens) {
      if (token.type === 'heading' && token['depth'] === 2) {
        sections.push({ heading: textOf(token), tokens: [], text: '' });
      } else {
        const section = sections.at(-1);
        section?.tokens.push(token);
        if (section !== undefined) section.text += token.raw;
      }
    }
    return sections;
  }

  section(heading: string): Section {
    const section = this.sections.find((each) => each.heading === heading);
    if (section === undefined) throw new Error(`There is no heading "${heading}".`);
    return section;
  }

  /** The fragments of the headings. */
  get anchors(): string[] {
    const headings = this.#tokens.filter(({ type }) => type === 'heading');
    return headings.map((heading) => anchorOf(textOf(heading)));
  }

  /** Targets of links inside the repository. */
  get links(): string[] {
    const targets: string[] = [];
    void walkTokens(this.#tokens, (token) => {
      if (token.type === 'link' || token.type === 'image') targets.push(String(token['href']));
    });
    return targets.filter((target) => !/^[a-z]+:/.test(target));
  }
}

function textOf(token: Token): string {
  return 'text' in token ? token.text : '';
}

/** All blocks of code, also those in lists. */
export function blocksOf(tokens: readonly Token[]): Block[] {
  const blocks: Block[] = [];
  let line = 1;
  for (const outer of tokens) {
    void walkTokens([outer], (token) => {
      if (token.type !== 'code') return;
      const [language = '', file] = String(token['lang'] ?? '').split(' ');
      blocks.push({ language, file, text: `${textOf(token)}\n`, line: line + 1 });
    });
    line += outer.raw.split('\n').length - 1;
  }
  return blocks;
}

/** The cells of the first table, without its header row and without backquotes. */
export function tableOf(tokens: readonly Token[]): string[][] {
  const table = tokens.find((token): token is Tokens.Table => token.type === 'table');
  return (table?.rows ?? []).map((row) => row.map(({ text }) => text.replaceAll('`', '')));
}

function commandsOf({ text, line }: Block): Example[] {
  return text
    .trimEnd()
    .split('\n')
    .map((command, at) => ({ command, output: undefined, line: line + at }));
}

/** `$ ` begins a command, and a backslash at the end of a line continues it. Everything else is output. */
function sessionOf({ text, line }: Block): Example[] {
  const examples: Example[] = [];
  let continues = false;
  for (const [at, content] of text.split('\n').entries()) {
    const latest = examples.at(-1);
    if (content.startsWith('$ ')) {
      examples.push({ command: content.slice(2), output: '', line: line + at });
    } else if (latest === undefined) {
      throw new Error(`Line ${line + at}: a console block begins with "$ ".`);
    } else if (continues) {
      latest.command += `\n${content}`;
    } else {
      latest.output += `${content}\n`;
    }
    continues = content.endsWith('\\');
  }
  return examples;
}
