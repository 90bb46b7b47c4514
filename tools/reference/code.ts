/**
 * Code as the reference shows it: with its strings in colour.
 */
import { html, Html } from './html.ts';
import { languages, sampleAddress } from './samples.ts';

/** A string and the colon behind it, which makes it the name of a field. */
const strings = /("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|`[^`]*`)(:?)/g;

export function codeHtml(text: string): Html {
  return html`<pre class="code"><code>${coloured(text.trimEnd())}</code></pre>`;
}

/** Code that readers take with them. The script shows the button if the browser can copy. */
export function copyableHtml(text: string): Html {
  return html`<div class="copyable">
    <button class="copy" type="button" hidden>Copy</button>
    ${codeHtml(text)}
  </div>`;
}

/** One sample in each language. Without scripts, the page shows all of them. */
export function samplesHtml(name: string, samples: Record<string, string>): Html {
  return html`<div class="samples">
    <fieldset>
      <legend class="only-heard">Language</legend>
      ${languages.map((language, at) => {
        const checked = at === 0 && new Html('checked');
        return html`<label>
          <input type="radio" name="${name}-language" value="${language}" ${checked} />${language}
        </label>`;
      })}
    </fieldset>
    ${languages.map(
      (language) =>
        html`<div class="sample" data-language="${language}">
          ${copyableHtml(samples[language] ?? '')}
        </div>`,
    )}
  </div>`;
}

function coloured(text: string): Html[] {
  const parts: Html[] = [];
  let end = 0;
  for (const { 1: string = '', 2: colon, index } of text.matchAll(strings)) {
    if (colon === ':') continue;
    parts.push(addressed(text.slice(end, index)));
    parts.push(html`<span class="string">${addressed(string)}</span>`);
    end = index + string.length;
  }
  return [...parts, addressed(text.slice(end))];
}

/** Marks the address of the service, which the script of the page replaces with the real one. */
function addressed(text: string): Html {
  const parts = text.split(sampleAddress);
  return html`${parts.map((part, at) => [at > 0 && addressHtml, part])}`;
}

export const addressHtml = html`<span class="address">${sampleAddress}</span>`;
