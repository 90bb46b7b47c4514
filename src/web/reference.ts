/**
 * The script of the reference: the choice of a language, buttons to copy code, and the real address in samples.
 */
import { copy } from './shared/dom.ts';
import { recall, remember } from './shared/remember.ts';

const key = 'plant-store.language';

const address = new URL('.', location.href).href.replace(/\/$/, '');
for (const element of document.querySelectorAll('.address')) element.textContent = address;

const radios = [...document.querySelectorAll<HTMLInputElement>('.samples input')];

function choose(language: string): void {
  document.documentElement.dataset['language'] = language;
  for (const radio of radios) radio.checked = radio.value === language;
}

for (const radio of radios) {
  radio.addEventListener('change', () => {
    const top = radio.getBoundingClientRect().top;
    choose(radio.value);
    // Samples above change their height. What the reader looks at must not move.
    scrollBy({ top: radio.getBoundingClientRect().top - top, behavior: 'instant' });
    remember(key, radio.value);
  });
}
const known = recall(key);
if (known !== undefined && radios.some(({ value }) => value === known)) choose(known);

const status = document.querySelector('#status');

for (const button of document.querySelectorAll<HTMLButtonElement>('.copy')) {
  button.hidden = false; // without this script, it would do nothing
  button.addEventListener('click', () => void copySample(button));
}

async function copySample(button: HTMLButtonElement): Promise<void> {
  const isCopied = await copy(button.parentElement?.querySelector('code')?.textContent ?? '');
  const outcome = isCopied ? 'Copied' : 'Not allowed';
  button.textContent = outcome;
  if (status) status.textContent = outcome;
  setTimeout(() => {
    button.textContent = 'Copy';
    if (status) status.textContent = '';
  }, 2000);
}
