/**
 * Replaces the password, and the colon before it, in each database address in `text` with `replacement`. It also
 * finds addresses that are mistyped.
 */
export function replacePasswords(text: string, replacement: string): string {
  return text.replace(/(\bpostgres(?:ql)?:\/*[^\s:@/]*):[^\s@]*@/gi, `$1${replacement}@`);
}
