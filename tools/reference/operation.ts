/**
 * One operation: what it does and what its parameters mean, beside a sample request and its response.
 */
import { STATUS_CODES } from 'node:http';
import { html, type Html } from './html.ts';
import { codeHtml, samplesHtml } from './code.ts';
import { inlineHtml } from './markdown.ts';
import { exampleOf, type Header, type Operation, type Response, type Schema } from './openapi.ts';
import { samplesOf } from './samples.ts';

export function operationHtml(path: string, method: string, operation: Operation): Html {
  const { operationId: id, parameters, requestBody, responses } = operation;
  const inPlace = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, description, required, schema }) =>
        fieldHtml(name, { ...schema, description }, required),
      );
  const body = requestBody?.content['application/json']?.schema;
  const all = Object.entries(responses); // in ascending order
  const isProblem = ([status]: [string, unknown]) => Number(status) >= 400;
  const successes = all.filter((one) => !isProblem(one));
  const [success] = successes;
  return html`<section class="operation" id="${id}" aria-labelledby="${id}-title">
    <div class="about">
      <h3 id="${id}-title"><a href="#${id}">${operation.summary}</a></h3>
      <p class="endpoint">${methodHtml(method)} <code>${path}</code></p>
      <p>${inlineHtml(operation.description)}</p>
      ${fieldsHtml('Path', inPlace('path'))} ${fieldsHtml('Query parameters', inPlace('query'))}
      ${fieldsHtml('Request headers', inPlace('header'))}
      ${fieldsHtml('Request body', body ? propertiesHtml(body, body.required) : [])}
      ${successes.map((one) => successHtml(...one))}
      <details>
        <summary>Problems</summary>
        <ul class="problems">
          ${all.filter(isProblem).map((one) => problemHtml(...one))}
        </ul>
      </details>
    </div>
    <div class="example">
      ${samplesHtml(id, samplesOf(path, method, operation))}
      ${success && responseExampleHtml(...success)}
    </div>
  </section>`;
}

export function methodHtml(method: string): Html {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

function fieldsHtml(heading: string, fields: Html[]): Html | false {
  if (fields.length === 0) return false;
  return html`<h4>${heading}</h4>
    <dl class="fields">${fields}</dl>`;
}

/** A field of an object, or a parameter. */
function fieldHtml(name: string, schema: Schema, required: boolean): Html {
  return html`<div>
    <dt>
      <code>${name}</code> <span class="type">${typeOf(schema)}</span>
      ${required && html`<span class="required">required</span>`}
    </dt>
    <dd>${inlineHtml(schema.description ?? '')}</dd>
  </div>`;
}

/** The fields of an object, or of the objects of an array, each followed by its own fields. */
function propertiesHtml(
  { properties = {}, items }: Schema,
  required: string[] = [],
  prefix = '',
): Html[] {
  if (items) return propertiesHtml(items, required, prefix);
  return Object.entries(properties).flatMap(([name, schema]) => [
    fieldHtml(`${prefix}${name}`, schema, required.includes(name)),
    ...propertiesHtml(schema, [], `${prefix}${name}${schema.items ? '[]' : ''}.`),
  ]);
}

function typeOf({ type, format, items, enum: values, anyOf }: Schema): string {
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  if (items) return `array of ${typeOf(items)}`;
  if (values) return values.join(' | ');
  return format === 'date-time' ? 'date and time' : [type].flat().join(' or ');
}

function successHtml(status: string, { description, headers = {}, content }: Response): Html {
  const schema = content?.['application/json']?.schema;
  const fields = [
    ...ownHeaders(headers).map(([name, header]) => headerHtml(name, header)),
    ...(schema ? propertiesHtml(schema) : []),
  ];
  if (fields.length === 0) {
    return html`<p class="response">${statusHtml(status)} ${inlineHtml(description)}</p>`;
  }
  return html`<details class="response">
    <summary>${statusHtml(status)} ${inlineHtml(description)}</summary>
    <dl class="fields">${fields}</dl>
  </details>`;
}

function headerHtml(name: string, { description }: Header): Html {
  return html`<div>
    <dt><code>${name}</code> <span class="type">header</span></dt>
    <dd>${inlineHtml(description)}</dd>
  </div>`;
}

/** Every response can have the others; the page describes them once. */
function ownHeaders(headers: Record<string, Header>): [string, Header][] {
  return Object.entries(headers).filter(([name]) => !/^(?:X-Request-Id|Vary|RateLimit)/.test(name));
}

function problemHtml(status: string, { description, headers = {}, content = {} }: Response): Html {
  const kinds = Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples));
  const names = ownHeaders(headers).map(([name]) => html` Has <code>${name}</code>.`);
  return html`<li>
    ${statusHtml(status)}
    <div>
      <p>${inlineHtml(description)}${names}</p>
      <p>${kinds.map((kind) => html`<a href="#${kind}">${kind}</a> `)}</p>
    </div>
  </li>`;
}

function statusHtml(status: string): Html {
  return html`<span class="status s${status.charAt(0)}">${status}</span>`;
}

function responseExampleHtml(status: string, { headers = {}, content }: Response): Html {
  const schema = content?.['application/json']?.schema;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...ownHeaders(headers)
      .filter(([name]) => !/^(?:Idempotent-Replayed|Total-Count)$/.test(name)) // what the request does not ask for
      .map(([name, { example }]) => `${name}: ${String(example)}`),
    ...(schema ? ['', JSON.stringify(exampleOf(schema), null, 2)] : []),
  ];
  return html`<h4>Response</h4>
    ${codeHtml(lines.join('\n'))}`;
}
