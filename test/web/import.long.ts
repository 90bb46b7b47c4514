import { it } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { importInterrupted } from './import.ts';
import { browserOfFile } from './store.ts';

const browser = browserOfFile();

it(
  '10,000 rows are added once, although the page is closed half way',
  { skip: withoutBrowser },
  (t) => importInterrupted(t, browser(), 10_000),
);
