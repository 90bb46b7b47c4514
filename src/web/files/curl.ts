/**
 * The command that lists in a terminal what the page shows.
 */
import { serviceUrl } from '../session/connection.ts';

/**
 * Copies the command that lists all plants, or those with this tag. It reads the token from $TOKEN, so that it does not
 * end up in a clipboard or a history. Returns what to tell the user.
 */
export async function copyCurl(tag: string | undefined): Promise<string> {
  const url = new URL('plants?fields=id,name,tag', serviceUrl);
  if (tag !== undefined) url.search += `&${new URLSearchParams({ tag })}`;
  const address = url.href.replaceAll("'", '%27');
  try {
    await navigator.clipboard.writeText(`curl '${address}' -H "Authorization: Bearer $TOKEN"`);
    return 'Copied. The command reads your token from $TOKEN.';
  } catch {
    return 'The browser does not allow the page to copy. Use HTTPS.';
  }
}
