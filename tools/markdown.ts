/**
 * Reads examples, tables, headings and links from the Markdown of the documentation.
 */
import { readFileSync } from 'node:fs';

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
  [/\b\d{8}T\d{9}Z/g, '<time>'],
  [/^\d\d:\d\d:\d\d /gm, '<time> '],
  [/\bt=\d+$/gm, 't=<seconds>'],
  [/^retry-after: \d+$/gm, 'retry-after: <seconds>'],
  [/ after \d+ s\./g, ' after <seconds> s.'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:8080'],
  // Progress: a page shows the last state of the bar on a terminal, and without one there is none.
  [/^(?:(?:Copying|Restoring|Comparing) \[.*\n)+\n?/gm, ''],
  [/\b[0-9a-f]{64}\b/g, '<digest>'],
  [/postgres:\/\/[^\s@]+@[^\s/]+\/\w+/g, 'postgres://plants@127.0.0.1/plants'],
  [/\r/g, ''],
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
  /** The line of its first line in the file. */
  line: number;
}

export interface Example {
  command: string;
  /** Undefined if the page does not show it. */
  output: string | undefined;
  line: number;
}

export interface Section {
  heading: string;
  text: string;
}

export class Page {
  readonly text: string;
  readonly #prose: string;

  constructor(file: string) {
    this.text = readFileSync(file, 'utf8');
    this.#prose = this.text.replaceAll(/^```[^]*?^```$/gm, '');
  }

  get blocks(): Block[] {
    return blocksOf(this.text);
  }

  get examples(): Example[] {
    return this.blocks.flatMap((block) => {
      if (block.language === 'sh' && block.file === undefined) return commandsOf(block);
      return block.language === 'console' ? sessionOf(block) : [];
    });
  }

  /** Headings of the second level, with the text below each. */
  get sections(): Section[] {
    return this.text
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = ''] = section.split('\n', 1);
        return { heading, text: section.slice(heading.length) };
      });
  }

  section(heading: string): string {
    const section = this.sections.find((each) => each.heading === heading);
    if (section === undefined) throw new Error(`There is no heading "${heading}".`);
    return section.text;
  }

  /** The fragments of the headings, as GitHub derives them. */
  get anchors(): string[] {
    return [...this.#prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\-_ ]/gu, '')
        .replaceAll(' ', '-'),
    );
  }

  /** Targets of links inside the repository. */
  get links(): string[] {
    return [...this.#prose.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target));
  }
}

export function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```(\w*)(?: (\S+))?\n([^]*?)^```$/gm)].map((match) => {
    const [, language = '', file, inner = ''] = match;
    return { language, file, text: inner, line: text.slice(0, match.index).split('\n').length + 1 };
  });
}

/** The cells of the first table, without its header row and without backquotes. */
export function tableOf(text: string): string[][] {
  const [, , ...rows] = text.split('\n').filter((line) => line.startsWith('|'));
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
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
