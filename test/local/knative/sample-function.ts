/**
 * A program that stands for an image in the tests of the local Knative. Its first argument is how it behaves.
 * It is a function like those of this project: health paths, `POST /` answered with 204, a clean end at SIGTERM.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const behaviour = process.argv[2] ?? 'plain';
const started = Date.now();
console.log(JSON.stringify({ msg: 'started', behaviour }));
if (behaviour === 'broken') process.exit(1);
if (behaviour === 'job') process.exit(process.env.FAILS === undefined ? 0 : 1);

const held = new Set<(status: number) => void>();
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const answer = (status: number, body = '') => void response.writeHead(status).end(body);
  request.resume();
  switch (url.pathname) {
    case '/health/readiness':
      return answer(behaviour === 'slow' && Date.now() - started < 300 ? 503 : 200);
    case '/env':
      return answer(200, JSON.stringify(process.env));
    case '/file':
      return answer(200, readFileSync(url.searchParams.get('path') ?? '', 'utf8'));
    case '/hold':
      return void held.add(answer);
    case '/release':
      for (const each of held) each(204);
      return answer(204);
    case '/exit':
      return process.exit(3);
    default: {
      const { 'ce-type': type, 'ce-name': name, 'ce-knativeerrorcode': errorCode } = request.headers;
      console.log(JSON.stringify({ msg: 'event', path: url.pathname, type, name, errorCode }));
      if (name === 'refused' && url.pathname === '/') return answer(400, 'no');
      return name === 'chatty' ? answer(200, 'OK') : answer(204);
    }
  }
});
server.keepAliveTimeout = 95_000;
server.listen(Number(process.env.PORT), '127.0.0.1');

process.on('SIGTERM', () => {
  if (behaviour === 'stubborn') return;
  for (const each of held) each(503);
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
