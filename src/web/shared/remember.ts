/**
 * Texts that this browser keeps: `localStorage` for every tab, `sessionStorage` for this one. A browser can block both.
 * Then a text is lost with the page.
 */
type Area = 'localStorage' | 'sessionStorage';

/** Undefined removes the text. */
export function remember(area: Area, key: string, text: string | undefined): void {
  try {
    if (text === undefined) window[area].removeItem(key);
    else window[area].setItem(key, text);
  } catch {
    // blocked, or full
  }
}

export function recall(area: Area, key: string): string | undefined {
  try {
    return window[area].getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}
