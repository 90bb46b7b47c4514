/**
 * Commands that repeat in a terminal what the page shows. They read the token from $TOKEN, so that it does not end up
 * in a clipboard or a history.
 */
import { serviceUrl } from './connection.ts';

export function curlOf(path: string, parameters: Record<string, string | undefined>): string {
  const url = new URL(path, serviceUrl);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  // The list of fields stays readable: a comma needs no escape.
  const address = url.href.replaceAll('%2C', ',').replaceAll("'", '%27');
  return `curl '${address}' -H "Authorization: Bearer $TOKEN"`;
}

/** The command that gets one plant with all its fields. */
export function curlOfPlant(id: number): string {
  return curlOf(`plants/${id}`, { fields: 'id,name,tag' });
}

/** Copies the command. Returns what to tell the user. */
export async function copyCurl(command: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(command);
    return 'Copied. The command reads your token from $TOKEN.';
  } catch {
    return 'The browser does not allow the page to copy. Use HTTPS, or open a plant and select its command.';
  }
}
