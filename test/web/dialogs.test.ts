/**
 * The dialogs of the page and the reference, in one browser.
 */
import { looks } from '../support/accessibility.ts';
import { testStore } from './states.ts';

testStore(looks.filter(({ colorScheme }) => colorScheme === 'light'));
await import('./journeys/sharing.ts');
await import('./journeys/people.ts');
await import('./journeys/import.ts');
await import('./journeys/labels.ts');
await import('./journeys/sign-on.ts');
await import('./journeys/reference.ts');
