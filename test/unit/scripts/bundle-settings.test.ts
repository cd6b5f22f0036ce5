import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { useBundle } from './use-bundle.ts';

describe('the bundle, wrongly started,', () => {
  const { run, end } = useBundle();

  describe('ends at once, with 1 and exactly one line, when', () => {
    const credentials = 'give the Secret both "username" and "password".';
    const cases: Record<string, [fn: string, settings: Record<string, string>, line: string]> = {
      'a setting is missing': [
        'requeue',
        { LLDAP_INSTANCE: '' },
        'LLDAP_INSTANCE is not set: give the value of the lldap-instance label that this installation serves.',
      ],
      'an address is none': [
        'requeue',
        { BROKER_URL: 'broker' },
        'BROKER_URL is not an address of the form http://host:port, without user name or password: correct it.',
      ],
      'an address holds a password': [
        'user',
        { BROKER_URL: 'http://admin:hush@broker' },
        'BROKER_URL is not an address of the form http://host:port, without user name or password: correct it.',
      ],
      'the broker has no address': [
        'startup',
        { BROKER_URL: '' },
        'BROKER_URL is not set: give an address that starts with http:// or https://.',
      ],
      'a number is none': [
        'group',
        { MAX_CONCURRENT_RECONCILES: 'many' },
        'MAX_CONCURRENT_RECONCILES is "many": it must be a whole number from 1 to 1000.',
      ],
      'a choice is none': ['membership', { ADOPTION: 'some' }, 'ADOPTION is "some": it must be one of privileged, all.'],
      'the credentials are not mounted': [
        'user',
        { CREDENTIALS_DIR: '' },
        'CREDENTIALS_DIR is not set: mount the Secret with "username" and "password" and name its folder.',
      ],
      'the credentials are somewhere else': [
        'attribute-schema',
        { CREDENTIALS_DIR: '/nowhere' },
        `The credentials' key "username" cannot be read (ENOENT): ${credentials}`,
      ],
    };
    for (const [name, [fn, settings, line]] of Object.entries(cases)) {
      it(name, async () => {
        assert.deepEqual(await end(run([fn], settings)), { code: 1, stdout: '', stderr: `lldap-operator ${fn}: ${line}\n` });
      });
    }

    it('another process has its port', async () => {
      const other = createServer().listen(0);
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      try {
        const ended = await end(run(['requeue'], { PORT: String(port) }));
        const line = `PORT is ${port}, which another process uses: give a port that is free.`;
        assert.deepEqual(ended, { code: 1, stdout: '', stderr: `lldap-operator requeue: ${line}\n` });
      } finally {
        other.close();
      }
    });

    const names = 'give one of user, group, membership, attribute-schema, startup, requeue, call-startup.';
    for (const name of ['users', 'constructor', '']) {
      it(`there is no function "${name}"`, async () => {
        assert.deepEqual(await end(run([name], {})), { code: 1, stdout: '', stderr: `"${name}" is not a function: ${names}\n` });
      });
    }
  });
});
