/**
 * Rare events on the page, in one browser.
 */
await import('./rare/interruptions.ts');
await import('./rare/lists.ts');
await import('./rare/sharing.ts');
await import('./rare/import.ts');
await import('./rare/sign-on.ts');
