import { looks } from '../support/accessibility.ts';
import { testStore } from './states.ts';

testStore(looks.filter(({ colorScheme }) => colorScheme === 'light'));
