/** Text that may quote what was typed, without the passwords of addresses in it. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\bpostgres(?:ql)?:\/*[^\s:@/]*):[^\s@]*@/gi, '$1:...@');
}
