/**
 * What people do with plants on the page, and the client in a browser: one browser for all of them.
 */
await import('./plant-list.ts');
await import('./journeys/session.ts');
await import('./journeys/join.ts');
await import('./journeys/stay.ts');
await import('./journeys/plants.ts');
await import('./journeys/search.ts');
await import('./journeys/many.ts');
await import('./journeys/edit.ts');
await import('./journeys/live.ts');
await import('./journeys/position.ts');
await import('./journeys/bin.ts');
await import('../client/browser.ts');
