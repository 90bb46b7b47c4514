// The health check of the image: exits with 0 if the service of this container is ready.
const { PLANT_STORE_PORT: port = 8080, PLANT_STORE_TLS_CERT: certificate } = process.env;
const { get } = await import(certificate ? 'node:https' : 'node:http');

const request = get({
  host: '127.0.0.1',
  port,
  path: '/readyz',
  timeout: 5_000,
  rejectUnauthorized: false, // the certificate has the names that clients use
});
request.on('timeout', () => request.destroy());
request.on('error', () => process.exit(1));
request.on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1));
