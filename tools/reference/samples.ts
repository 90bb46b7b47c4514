/**
 * The request of an operation with the examples of openapi.json, in each language. Tests run every sample.
 */
import { exampleOf, type Operation } from './openapi.ts';

/** The address in the samples. The page replaces it with its own. */
export const sampleAddress = 'http://127.0.0.1:8080';

export const languages = ['curl', 'JavaScript', 'Python'] as const;
type Language = (typeof languages)[number];

interface Request {
  method: string;
  url: string;
  needsToken: boolean;
  /** JSON; undefined if there is no body. */
  body: unknown;
  /** Whether the response has a body, which is JSON. */
  isAnswered: boolean;
}

export function samplesOf(
  path: string,
  method: string,
  operation: Operation,
): Record<Language, string> {
  const request = requestOf(path, method, operation);
  return { curl: curl(request), JavaScript: javaScript(request), Python: python(request) };
}

/** Has the parameters that are required or have an example. */
function requestOf(path: string, method: string, operation: Operation): Request {
  const query: string[] = [];
  let url = sampleAddress + path;
  for (const { name, in: place, schema } of operation.parameters) {
    const example = exampleOf(schema);
    if (example === undefined) continue;
    const text = JSON.stringify(example).replaceAll(/[[\]"]/g, ''); // a list is separated by commas
    if (place === 'path') url = url.replace(`{${name}}`, text);
    else query.push(`${name}=${text}`);
  }
  const { schema } = operation.requestBody?.content['application/json'] ?? {};
  return {
    method: method.toUpperCase(),
    url: query.length === 0 ? url : `${url}?${query.join('&')}`,
    needsToken: operation.security?.length !== 0,
    body: schema && exampleOf(schema),
    isAnswered: Object.entries(operation.responses).some(
      ([status, { content }]) => status.startsWith('2') && content !== undefined,
    ),
  };
}

/** The method that curl and Python use unless another is named. */
function defaultMethod(body: unknown): string {
  return body === undefined ? 'GET' : 'POST';
}

function curl({ method, url, needsToken, body }: Request): string {
  const parts = [url.includes('?') ? `'${url}'` : url];
  if (method !== defaultMethod(body)) parts.unshift(`-X ${method}`);
  if (needsToken) parts.push('-H "Authorization: Bearer $PLANT_STORE_TOKEN"');
  if (body !== undefined) {
    parts.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`);
  }
  return `curl ${parts.join(' \\\n  ')}`;
}

function javaScript({ method, url, needsToken, body, isAnswered }: Request): string {
  const headers = [
    ...(needsToken ? ['    authorization: `Bearer ${process.env.PLANT_STORE_TOKEN}`,'] : []),
    ...(body === undefined ? [] : ["    'content-type': 'application/json',"]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(headers.length === 0 ? [] : ['  headers: {', ...headers, '  },']),
    ...(body === undefined ? [] : ['  body: JSON.stringify(body),']),
  ];
  const second = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return [
    `const url = '${url}';`,
    ...(body === undefined ? [] : [`const body = ${objectOf(body, "'")};`]),
    `const response = await fetch(url${second});`,
    'if (!response.ok) {',
    '  throw new Error((await response.json()).detail);',
    '}',
    ...(isAnswered ? ['console.log(await response.json());'] : []),
  ].join('\n');
}

function python({ method, url, needsToken, body, isAnswered }: Request): string {
  const headers = [
    ...(needsToken ? ['    "Authorization": "Bearer " + os.environ["PLANT_STORE_TOKEN"],'] : []),
    ...(body === undefined ? [] : ['    "Content-Type": "application/json",']),
  ];
  const options = [
    ...(headers.length === 0 ? [] : ['headers=headers']),
    ...(body === undefined ? [] : ['data=json.dumps(body).encode()']),
    ...(method === defaultMethod(body) ? [] : [`method="${method}"`]),
  ];
  const modules = [...(isAnswered ? ['json'] : []), ...(needsToken ? ['os'] : [])];
  return [
    `import ${modules.join(', ')}`,
    'from urllib.request import Request, urlopen',
    '',
    `url = "${url}"`,
    ...(headers.length === 0 ? [] : ['headers = {', ...headers, '}']),
    ...(body === undefined ? [] : [`body = ${objectOf(body, '"')}`]),
    'request = Request(',
    ...['url', ...options].map((option) => `    ${option},`),
    ')',
    'with urlopen(request) as response:',
    isAnswered ? '    print(json.load(response))' : '    print(response.status)',
  ].join('\n');
}

/** A flat object as JavaScript or Python writes it. */
function objectOf(body: unknown, quote: string): string {
  const key = (name: string) => (quote === '"' ? `"${name}"` : name);
  const value = (one: unknown) => JSON.stringify(one).replace(/^"(.*)"$/, `${quote}$1${quote}`);
  const pairs = Object.entries(Object(body)).map(([name, one]) => `${key(name)}: ${value(one)}`);
  return quote === '"' ? `{${pairs.join(', ')}}` : `{ ${pairs.join(', ')} }`;
}
