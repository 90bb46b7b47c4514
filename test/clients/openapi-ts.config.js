/** Generates the client of hey-api, which checks by zod what it sends and what it gets. */
export default {
  input: '../../openapi.json',
  output: { path: '.cache/hey-api', module: { extension: '.ts' } },
  plugins: ['@hey-api/client-fetch', 'zod', { name: '@hey-api/sdk', validator: true }],
};
