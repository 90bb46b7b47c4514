/**
 * What all services must answer alike: everything but times, random texts, and positions in the log.
 */
import { decode, pathOf } from './document.ts';
import type { Request } from './request.ts';
import type { Answer } from './wire.ts';

const varying = new Set(['date', 'x-request-id', 'connection', 'keep-alive']);

export function steadyOf(request: Request, { status, headers, body }: Answer) {
  const isOfTokens = /^\/tokens\b/.test(decode(pathOf(request.target)) ?? '');
  // A page of tokens is as long as the labels that happen to be in it.
  const alike = headers.filter(
    ([name]) =>
      !varying.has(name.toLowerCase()) && !(isOfTokens && name.toLowerCase() === 'content-length'),
  );
  return {
    status,
    headers: alike.map(([name, value]) => [name, withoutChance(value)]),
    body: isOfTokens && status < 300 ? tokensIn(request, body) : withoutChance(body),
  };
}

function withoutChance(text: string): string {
  return text
    .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<request>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/after=[\da-z]+\.\d+\.[\da-z]+\.(?:all|\d+)/g, 'after=<cursor>')
    .replace(/(\/tokens\/|after=)[0-9A-Za-z]{9}-[0-9a-f]{16}/g, '$1<token>');
}

/** Ids of tokens are random, and so is their order. Of a page, only the number of its tokens is alike. */
function tokensIn({ target }: Request, body: string): unknown {
  if (body === '') return body;
  const all = [JSON.parse(body)].flat() as { id: string; token?: string }[];
  if (/[?&][^=]*(?:limit|after)/.test(decode(target) ?? '')) return all.length;
  return all
    .map(({ id, token, ...others }) =>
      withoutChance(JSON.stringify([typeof id, typeof token, others])),
    )
    .toSorted();
}
