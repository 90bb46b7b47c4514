/**
 * Texts that this tab keeps. A browser can block that. Then a text is lost with the page.
 */

/** Undefined removes the text. */
export function remember(key: string, text: string | undefined): void {
  try {
    if (text === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // blocked, or full
  }
}

export function recall(key: string): string | undefined {
  try {
    return sessionStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}
