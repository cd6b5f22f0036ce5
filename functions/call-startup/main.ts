import { randomUUID } from 'node:crypto';
import { EVENT_TYPE } from '../../shared/constants.ts';
import { createHttp, HttpError } from '../../shared/platform/http.ts';

/** The command of the Jobs: calls startup, prints its summary, and fails if startup did. */

/** Knative ends a request after ten minutes. */
const TIMEOUT_MS = 600_000;

async function call(): Promise<number> {
  const url = process.env.STARTUP_URL;
  const tokenFile = process.env.STARTUP_TOKEN_FILE;
  const mode = process.argv[3] ?? 'sweep';
  if (!url) {
    process.stderr.write('STARTUP_URL is not set: give the address of the startup function.\n');
    return 1;
  }
  const http = createHttp({ timeoutMs: TIMEOUT_MS, keepAliveMs: 1_000, tokenFile });
  try {
    const answer = await http.request({
      method: 'POST',
      url,
      headers: {
        'content-type': 'application/json',
        prefer: 'return=representation',
        'ce-specversion': '1.0',
        'ce-id': randomUUID(),
        'ce-source': '/lldap-operator/call',
        'ce-type': EVENT_TYPE.startup,
      },
      body: JSON.stringify({ mode }),
    });
    process.stdout.write(`${answer.text.trim()}\n`);
    return answer.status >= 200 && answer.status < 300 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    process.stderr.write(`startup did not answer: ${error.message}\n`);
    return 1;
  } finally {
    http.close();
  }
}

void call().then((code) => {
  process.exitCode = code;
});
