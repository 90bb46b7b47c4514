import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type ServerResponse } from 'node:http';
import { it } from 'node:test';
import { maxUnreadBytesOfUser } from '../../src/http/limits.ts';
import { UnreadResponses } from '../../src/http/response/unread-responses.ts';
import { startApp } from '../support/app.ts';

it('each response releases its memory, also one that reserved nothing', async (t) => {
  const unread = new UnreadResponses();
  const caller = { store: 1, user: 1 };
  const reservationFor = (response: ServerResponse) => unread.reservationFor(caller, response);
  const { address } = await startApp(t, {
    addRoutes: (app) => {
      app.get('/reserve', async (_request, reply) => {
        const reservation = reservationFor(reply.raw);
        for (const bytes of [0, 10, 0, 20]) reservation.reserve(bytes);
        return 'done';
      });
      app.get('/all', async (_request, reply) => {
        const reservation = reservationFor(reply.raw);
        assert.throws(() => reservation.reserve(maxUnreadBytesOfUser + 1), { kind: 'overloaded' });
        reservation.reserve(maxUnreadBytesOfUser);
        return 'done';
      });
    },
  });
  for (const path of ['/reserve', '/all', '/reserve', '/all']) {
    const sent = get(address + path, { agent: false });
    const [response] = await once(sent, 'response');
    assert.equal(response.statusCode, 200);
    await once(response.resume(), 'close');
  }
});
