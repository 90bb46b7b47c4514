/**
 * Commands and files of the documentation, for tests that use them as readers do.
 */
import { Page } from '../../tools/markdown.ts';

/** A function that returns the block of a page in docs/ that has this text. */
export function documentedBlock(page: string): (text: string) => string {
  const { blocks } = new Page(new URL(`../../docs/${page}`, import.meta.url));
  return (text) => {
    const found = blocks.filter((block) => block.text.includes(text));
    if (found.length !== 1) throw new Error(`docs/${page} has ${found.length} blocks with ${text}`);
    return found[0]?.text ?? '';
  };
}
