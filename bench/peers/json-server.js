/**
 * json-server on a file with the plants, as `json-server plants.json` runs it. It has no tokens, and writes the whole file
 * at each create, without a sync. Prints its URL.
 */
import jsonServer from 'json-server';

const [, , file] = process.argv;
const server = jsonServer.create();
server.use(jsonServer.defaults({ logger: false }));
// The requests of the service, in the words of json-server.
server.use(
  jsonServer.rewriter({
    '/plants\\?limit=:limit&after=:after': '/plants?id_gte=:after&_limit=:limit',
    '/plants\\?limit=:limit': '/plants?_limit=:limit',
  }),
);
server.use(jsonServer.bodyParser);
server.use(jsonServer.router(file));
const listening = server.listen(0, '127.0.0.1', () => {
  console.log(`json-server listens on http://127.0.0.1:${listening.address().port}`);
});
