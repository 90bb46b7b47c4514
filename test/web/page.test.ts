/**
 * What people do with plants on the page, in one browser.
 */
await import('./journeys/session.ts');
await import('./journeys/plants.ts');
await import('./journeys/search.ts');
await import('./journeys/edit.ts');
await import('./journeys/bin.ts');
