import { looks } from '../support/accessibility.ts';
import { testStates } from './states.ts';

testStates(looks);
