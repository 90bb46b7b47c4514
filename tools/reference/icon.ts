/**
 * The plant that the reference has beside its name, and as its icon.
 */
import { html } from './html.ts';

export const plantPath =
  'M12 21v-9m0 2.5C6.5 14.5 4 11 4 5c5.5 0 8 3.5 8 9.5Zm0-3.5c0-4.5 2.5-7 8-7 0 4.5-2.5 7-8 7Z';

export const plantIcon = html`<svg viewBox="0 0 24 24" aria-hidden="true">
  <path d="${plantPath}" />
</svg>`;

/** A data URL for a tab, where the colours of the page do not apply. */
export const tabIcon = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="${plantPath}" fill="none" stroke="#1d6b44" stroke-width="2"/></svg>`,
)}`;
