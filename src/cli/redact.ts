/**
 * Text with addresses of databases in it, or what somebody has typed in the place of one, and `shown`
 * where each password and the colon before it were.
 */
export function withPasswords(text: string, shown: string): string {
  return text.replace(/(\bpostgres(?:ql)?:\/*[^\s:@/]*):[^\s@]*@/gi, `$1${shown}@`);
}
