/**
 * The part of curl that the examples of the documentation use, for machines without curl.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    include: { type: 'boolean', short: 'i' },
    head: { type: 'boolean', short: 'I' },
    silent: { type: 'boolean', short: 's' },
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true },
    'dump-header': { type: 'string', short: 'D' },
    data: { type: 'string', short: 'd' },
  },
});
const [url = ''] = positionals;
const fallback = values.head ? 'HEAD' : values.data === undefined ? 'GET' : 'POST';
const sent = request(url, { method: values.request ?? fallback });
for (const line of values.header ?? []) {
  const [, name = '', value = ''] = /^([^:]+): *(.*)$/.exec(line) ?? [];
  sent.setHeader(name, value);
}
sent.end(values.data);
const [response] = await once(sent, 'response');
const { httpVersion, statusCode, statusMessage, rawHeaders } = response;
let head = `HTTP/${httpVersion} ${statusCode} ${statusMessage}\r\n`;
for (let at = 0; at < rawHeaders.length; at += 2) {
  head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
}
head += '\r\n';
if (values.include || values.head) process.stdout.write(head);
if (values['dump-header'] !== undefined) writeFileSync(values['dump-header'], head);
for await (const chunk of response) process.stdout.write(chunk);
process.exit(); // an open connection would keep the process alive
