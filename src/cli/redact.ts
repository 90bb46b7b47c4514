/**
 * Replaces each password, and the colon before it, by `shown`. The text has addresses of databases in it, or
 * what somebody has typed in the place of one.
 */
export function replacePasswords(text: string, shown: string): string {
  return text.replace(/(\bpostgres(?:ql)?:\/*[^\s:@/]*):[^\s@]*@/gi, `$1${shown}@`);
}
