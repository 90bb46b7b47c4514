/**
 * Texts that this tab keeps, or this browser for all of its tabs. A browser can block that. Then a text is lost with the
 * page.
 */
export type Keeper = 'tab' | 'device';

/** When the last import on this device began. */
export const importKey = 'plant-store-import';

const storageOf = (keeper: Keeper) => (keeper === 'tab' ? sessionStorage : localStorage);

/** Undefined removes the text. */
export function remember(key: string, text: string | undefined, keeper: Keeper = 'tab'): void {
  try {
    if (text === undefined) storageOf(keeper).removeItem(key);
    else storageOf(keeper).setItem(key, text);
  } catch {
    // blocked, or full
  }
}

export function recall(key: string, keeper: Keeper = 'tab'): string | undefined {
  try {
    return storageOf(keeper).getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}
