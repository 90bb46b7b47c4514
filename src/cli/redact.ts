import { redactTokens } from '../token.ts';

/** Removes passwords and tokens from a message. */
export function redactSecrets(text: string): string {
  return redactTokens(replacePasswords(text, ':...'));
}

/**
 * Replaces the password, and the colon before it, in each address of a database or of Redis in `text` with `replacement`. It also
 * finds addresses that are mistyped.
 */
export function replacePasswords(text: string, replacement: string): string {
  return text.replace(
    /(\b(?:postgres(?:ql)?|rediss?):\/*[^\s:@/]*):[^\s@]*@/gi,
    `$1${replacement}@`,
  );
}
