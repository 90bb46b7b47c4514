/**
 * Writes openapi.json from the schemas of the routes. A test compares what is committed with what
 * this makes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import swagger from '@fastify/swagger';
import { fastify } from 'fastify';
import { format, resolveConfig } from 'prettier';

export const openapiFile = new URL('../openapi.json', import.meta.url);
