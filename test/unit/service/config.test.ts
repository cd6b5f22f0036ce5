import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, loadConfig, readCredentials } from '../../../shared/service/config.ts';
import { ConfigError } from '../../../shared/service/settings.ts';

const ENV = {
  LLDAP_INSTANCE: 'main',
  LLDAP_URL: 'http://lldap:17170',
  LLDAP_LDAP_URL: 'ldap://lldap:3890',
  BROKER_URL: 'http://broker-ingress/lldap-operator/lldap-operator',
};
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

function refusal(env: NodeJS.ProcessEnv): string {
  try {
    loadConfig(env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return 'accepted';
}

describe('shared/service/config', () => {
  it('needs four settings, and has a default for each of the others', () => {
    const config: Config = {
      instance: 'main',
      lldapUrl: 'http://lldap:17170',
      ldapUrl: 'ldap://lldap:3890',
      lldapProblem: undefined,
      baseDn: undefined,
      ca: undefined,
      brokerTokenFile: undefined,
      tokenAudience: undefined,
      credentialsDir: undefined,
      brokerUrl: 'http://broker-ingress/lldap-operator/lldap-operator',
      privilegedNamespaces: [],
      namespaces: 'all',
      adoption: 'privileged',
      passwordMinLength: 8,
      maxConcurrentReconciles: 32,
      lldapMaxConcurrentRequests: 8,
      retryMaxMs: 300_000,
      maxDelayedRetries: 1000,
      sweepRate: 50,
      logLevel: 'info',
      port: 8080,
    };
    assert.deepEqual(loadConfig(ENV), config);
  });

  const settings: Record<string, [NodeJS.ProcessEnv, Partial<Config>]> = {
    'encrypted addresses': [
      { LLDAP_URL: 'https://lldap/', LLDAP_LDAP_URL: 'ldaps://lldap:6360', BROKER_URL: 'https://broker/a/b//' },
      { lldapUrl: 'https://lldap', ldapUrl: 'ldaps://lldap:6360', brokerUrl: 'https://broker/a/b' },
    ],
    'blanks around a value': [
      { LLDAP_INSTANCE: ' main\n', PORT: ' 80 ' },
      { instance: 'main', port: 80 },
    ],
    'an empty value, which means the default': [
      { ADOPTION: '', MAX_CONCURRENT_RECONCILES: ' ', LLDAP_BASE_DN: '', LLDAP_CA: '', CREDENTIALS_DIR: '' },
      { adoption: 'privileged', maxConcurrentReconciles: 32 },
    ],
    'a base DN': [{ LLDAP_BASE_DN: 'dc=example,dc=com' }, { baseDn: 'dc=example,dc=com' }],
    'a certificate': [{ LLDAP_CA: PEM }, { ca: PEM.trim() }],
    'namespaces between commas or blanks': [
      { PRIVILEGED_NAMESPACES: 'admins, platform,\n ops,' },
      { privilegedNamespaces: ['admins', 'platform', 'ops'] },
    ],
    'tokens, posted and asked for': [
      { BROKER_TOKEN_FILE: '/etc/token', TOKEN_AUDIENCE: 'lldap-operator' },
      { brokerTokenFile: '/etc/token', tokenAudience: 'lldap-operator' },
    ],
    'resources of its own namespace only': [{ NAMESPACES: 'own' }, { namespaces: 'own' }],
    'adoption by all': [{ ADOPTION: 'all' }, { adoption: 'all' }],
    'the retries in seconds': [{ RETRY_MAX_SECONDS: '60' }, { retryMaxMs: 60_000 }],
    'the least of each number': [
      {
        PASSWORD_MIN_LENGTH: '1',
        MAX_CONCURRENT_RECONCILES: '1',
        LLDAP_MAX_CONCURRENT_REQUESTS: '1',
        RETRY_MAX_SECONDS: '1',
        MAX_DELAYED_RETRIES: '1',
        SWEEP_EVENTS_PER_SECOND: '1',
        PORT: '0',
      },
      {
        passwordMinLength: 1,
        maxConcurrentReconciles: 1,
        lldapMaxConcurrentRequests: 1,
        retryMaxMs: 1000,
        maxDelayedRetries: 1,
        sweepRate: 1,
        port: 0,
      },
    ],
    'the most of each number': [
      {
        PASSWORD_MIN_LENGTH: '1000',
        MAX_CONCURRENT_RECONCILES: '1000',
        LLDAP_MAX_CONCURRENT_REQUESTS: '100',
        RETRY_MAX_SECONDS: '300',
        MAX_DELAYED_RETRIES: '100000',
        SWEEP_EVENTS_PER_SECOND: '10000',
        PORT: '65535',
      },
      {
        passwordMinLength: 1000,
        maxConcurrentReconciles: 1000,
        lldapMaxConcurrentRequests: 100,
        retryMaxMs: 300_000,
        maxDelayedRetries: 100_000,
        sweepRate: 10_000,
        port: 65_535,
      },
    ],
    'a log level': [{ LOG_LEVEL: 'debug' }, { logLevel: 'debug' }],
    'a folder of credentials': [{ CREDENTIALS_DIR: '/credentials' }, { credentialsDir: '/credentials' }],
    'an instance of every form that a label has': [{ LLDAP_INSTANCE: 'A-b_c.9' }, { instance: 'A-b_c.9' }],
  };
  for (const [name, [env, expected]] of Object.entries(settings)) {
    it(`takes ${name}`, () => assert.deepEqual(loadConfig({ ...ENV, ...env }), { ...loadConfig(ENV), ...expected }));
  }

  describe('says in one line which setting is wrong and what it should be:', () => {
    const instance = (value: string) =>
      `LLDAP_INSTANCE is "${value}": it must be a label's value, up to 63 letters, digits, dashes, dots and underscores that begin and end with a letter or digit.`;
    const cases: Record<string, [NodeJS.ProcessEnv, string]> = {
      'no instance': [
        { LLDAP_INSTANCE: undefined },
        'LLDAP_INSTANCE is not set: give the value of the lldap-instance label that this installation serves.',
      ],
      'an empty instance': [
        { LLDAP_INSTANCE: '  ' },
        'LLDAP_INSTANCE is not set: give the value of the lldap-instance label that this installation serves.',
      ],
      'an instance that no label can have': [{ LLDAP_INSTANCE: 'main,other' }, instance('main,other')],
      'an instance that is too long for a label': [{ LLDAP_INSTANCE: 'x'.repeat(64) }, instance('x'.repeat(64))],
      'no address of the broker': [
        { BROKER_URL: undefined },
        'BROKER_URL is not set: give an address that starts with http:// or https://.',
      ],
      'an address of the broker that is none': [
        { BROKER_URL: 'broker' },
        'BROKER_URL is not an address of the form http://host:port, without user name or password: correct it.',
      ],
      'a number that is none': [
        { MAX_CONCURRENT_RECONCILES: 'many' },
        'MAX_CONCURRENT_RECONCILES is "many": it must be a whole number from 1 to 1000.',
      ],
      'a number that is not whole': [
        { LLDAP_MAX_CONCURRENT_REQUESTS: '2.5' },
        'LLDAP_MAX_CONCURRENT_REQUESTS is "2.5": it must be a whole number from 1 to 100.',
      ],
      'a number with a sign': [{ PORT: '-1' }, 'PORT is "-1": it must be a whole number from 0 to 65535.'],
      'a number too small': [{ PASSWORD_MIN_LENGTH: '0' }, 'PASSWORD_MIN_LENGTH is "0": it must be a whole number from 1 to 1000.'],
      'a number too large': [{ RETRY_MAX_SECONDS: '301' }, 'RETRY_MAX_SECONDS is "301": it must be a whole number from 1 to 300.'],
      'a rate too large': [
        { SWEEP_EVENTS_PER_SECOND: '10001' },
        'SWEEP_EVENTS_PER_SECOND is "10001": it must be a whole number from 1 to 10000.',
      ],
      'a bound too large': [
        { MAX_DELAYED_RETRIES: '100001' },
        'MAX_DELAYED_RETRIES is "100001": it must be a whole number from 1 to 100000.',
      ],
      'another word for namespaces': [{ NAMESPACES: 'team' }, 'NAMESPACES is "team": it must be one of all, own.'],
      'another word for adoption': [{ ADOPTION: 'none' }, 'ADOPTION is "none": it must be one of privileged, all.'],
      'another log level': [{ LOG_LEVEL: 'INFO' }, 'LOG_LEVEL is "INFO": it must be one of debug, info, warn, error.'],
      'a certificate that is none': [
        { LLDAP_CA: '/etc/ca.pem' },
        'LLDAP_CA is not a PEM certificate: it must hold "-----BEGIN CERTIFICATE-----".',
      ],
    };
    for (const [name, [env, message]] of Object.entries(cases)) it(name, () => assert.equal(refusal({ ...ENV, ...env }), message));
  });

  describe('leaves it to the resources to say what is wrong with lldap’s address:', () => {
    const ldap = 'LLDAP_LDAP_URL is not an address of the form ldap://host:port, without user name or password: correct it.';
    const http = 'LLDAP_URL is not an address of the form http://host:port, without user name or password: correct it.';
    const cases: Record<string, [NodeJS.ProcessEnv, string]> = {
      'no address of lldap': [{ LLDAP_URL: '' }, 'LLDAP_URL is not set: give an address that starts with http:// or https://.'],
      'no LDAP address': [
        { LLDAP_LDAP_URL: undefined },
        'LLDAP_LDAP_URL is not set: give an address that starts with ldap:// or ldaps://.',
      ],
      'an address without scheme': [{ LLDAP_URL: 'lldap:17170' }, http],
      'an address that is none': [{ LLDAP_URL: 'http://' }, http],
      'an address of the other kind': [{ LLDAP_LDAP_URL: 'http://lldap:3890' }, ldap],
      'an LDAP address without host': [{ LLDAP_LDAP_URL: 'ldap:lldap' }, ldap],
      'an address with a user name': [{ LLDAP_URL: 'http://admin@lldap' }, http],
      'an address with a password, which it does not repeat': [{ LLDAP_URL: 'http://:hush@lldap' }, http],
      'two addresses that are none': [{ LLDAP_URL: 'lldap', LLDAP_LDAP_URL: 'lldap' }, `${http} ${ldap}`],
    };
    for (const [name, [env, message]] of Object.entries(cases))
      it(name, () => assert.equal(loadConfig({ ...ENV, ...env }).lldapProblem, message));
  });

  describe('the credentials', () => {
    let directory: string;
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'credentials-'));
    });
    afterEach(() => rm(directory, { recursive: true }));
    const config = () => ({ ...loadConfig(ENV), credentialsDir: directory });
    const write = (key: string, value: string) => writeFile(join(directory, key), value);

    it('are read anew each time, so that a rotated password is used at once', async () => {
      await write('username', 'admin');
      await write('password', 'first');
      assert.deepEqual(readCredentials(config()), { username: 'admin', password: 'first' });
      await write('password', 'second');
      assert.deepEqual(readCredentials(config()), { username: 'admin', password: 'second' });
    });

    it('may end with one line break, which editors add; all else counts', async () => {
      await write('username', 'admin\n');
      await write('password', ' p\n\r\n');
      assert.deepEqual(readCredentials(config()), { username: 'admin', password: ' p\n' });
    });

    it('need a folder', async () => {
      assert.throws(() => readCredentials(loadConfig(ENV)), {
        name: 'ConfigError',
        message: 'CREDENTIALS_DIR is not set: mount the Secret with "username" and "password" and name its folder.',
      });
    });

    it('need both keys', async () => {
      await write('username', 'admin');
      assert.throws(() => readCredentials(config()), {
        name: 'ConfigError',
        message: `The credentials' key "password" cannot be read (ENOENT): give the Secret both "username" and "password".`,
      });
    });

    it('need files', async () => {
      await mkdir(join(directory, 'username'));
      assert.throws(() => readCredentials(config()), {
        name: 'ConfigError',
        message: `The credentials' key "username" cannot be read (EISDIR): give the Secret both "username" and "password".`,
      });
    });

    it('need values', async () => {
      await write('username', 'admin');
      await write('password', '\n');
      assert.throws(() => readCredentials(config()), {
        name: 'ConfigError',
        message: `The credentials' key "password" is empty: give the Secret both "username" and "password".`,
      });
    });
  });
});
