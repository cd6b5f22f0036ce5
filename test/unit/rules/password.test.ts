import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { INSTANCE_LABEL } from '../../../shared/constants.ts';
import type { Secret } from '../../../shared/kube/objects.ts';
import { Failure } from '../../../shared/rules/failure.ts';
import { isHashBy, type PasswordKey, passwordFrom, passwordHash, readPasswordKey, sameHash } from '../../../shared/rules/password.ts';
import { told } from '../support/examples.ts';

const KEY_BYTES = Buffer.alloc(32, 7);
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
const secret = (data?: Record<string, string>, labels?: Record<string, string>): Secret => ({
  metadata: { name: 'alice', namespace: 'team', ...(labels && { labels }) },
  ...(data && { data }),
});
const REF = { name: 'alice', namespace: 'team', key: 'password' };
const RULES = { instance: 'main', passwordMinLength: 8 };
const WATCHED = { [INSTANCE_LABEL]: 'main' };

describe('shared/rules/password', () => {
  const key: PasswordKey = { id: 'abcd1234', key: KEY_BYTES };

  describe('the installation’s key', () => {
    it('is read from its Secret, and named by a part of its digest', () => {
      const id = createHash('sha256').update(KEY_BYTES).digest('hex').slice(0, 8);
      assert.deepEqual(readPasswordKey(secret({ key: base64(KEY_BYTES) })), { id, key: KEY_BYTES });
    });

    const missing: Record<string, Secret | undefined> = {
      'while its Secret does not exist': undefined,
      'while its Secret is empty': secret(),
      'while its Secret has other keys only': secret({ other: base64(KEY_BYTES) }),
      'that is empty': secret({ key: '' }),
      'that is shorter than 32 bytes': secret({ key: base64(Buffer.alloc(31, 7)) }),
    };
    for (const [name, from] of Object.entries(missing)) {
      it(`is waited for ${name}`, () => {
        assert.throws(
          () => readPasswordKey(from),
          (error) => {
            assert.deepEqual(told(error as never), [
              'NotReady',
              'PasswordKeyMissing',
              "The operator's Secret lldap-operator-password-key is missing or holds no key of 32 bytes. The startup function creates a missing one. Delete one without a key.",
            ]);
            return true;
          },
        );
      });
    }
  });

  describe('what the status keeps of a password', () => {
    it('is a keyed hash over the user’s uuid and the password, with the key’s name', () => {
      const hmac = createHmac('sha256', KEY_BYTES).update(Buffer.from('uuid-alice\u0000correct horse')).digest('base64url');
      assert.equal(passwordHash(key, 'uuid-alice', 'correct horse'), `v1:abcd1234:${hmac}`);
    });

    it('never shows the password', () => {
      const hash = passwordHash(key, 'uuid-alice', 'correct horse');
      assert.doesNotMatch(hash, /correct|horse/);
      assert.doesNotMatch(hash, new RegExp(base64('correct horse').replace(/=+$/, '')));
    });

    const others: Record<string, string> = {
      'another password': passwordHash(key, 'u', 'other'),
      'the same password of a user created anew': passwordHash(key, 'u2', 'secret'),
      'the same password under another key': passwordHash({ ...key, key: Buffer.alloc(32, 8) }, 'u', 'secret'),
      'another division into uuid and password': passwordHash(key, 'usec', 'ret'),
      nothing: '',
    };
    for (const [name, hash] of Object.entries(others)) {
      it(`is not that of ${name}`, () => assert.equal(sameHash(hash, passwordHash(key, 'u', 'secret')), false));
    }

    it('is recognised', () => {
      assert.equal(sameHash(passwordHash(key, 'u', 'secret'), passwordHash(key, 'u', 'secret')), true);
      assert.equal(sameHash(undefined, passwordHash(key, 'u', 'secret')), false);
    });

    it('names the key, without which it tells nothing', () => {
      assert.equal(isHashBy(key, passwordHash(key, 'u', 'secret')), true);
      assert.equal(isHashBy(key, passwordHash({ ...key, id: 'abcd123' }, 'u', 'secret')), false);
      assert.equal(isHashBy(key, passwordHash({ ...key, id: 'another1' }, 'u', 'secret')), false);
      assert.equal(isHashBy(key, undefined), false);
    });

    it('is compared with whatever a person wrote into the status', () => {
      const hash = passwordHash(key, 'u', 'secret');
      assert.equal(sameHash('ä'.repeat(hash.length), hash), false);
      assert.equal(sameHash(`${hash}x`, hash), false);
    });
  });

  describe('a password', () => {
    const passwords: Record<string, string> = {
      'of the least length': '12345678',
      'with blanks at its ends and a line break, all of which count': ' 1234567\n',
      'of as many characters, not bytes': 'ääääßßßß',
      'with characters beyond the common plane': '😀😀😀😀😀😀😀😀',
      'with a byte order mark': '\uFEFF12345678',
      'of 10,000 bytes': 'x'.repeat(10_000),
    };
    for (const [name, password] of Object.entries(passwords)) {
      it(`${name} is taken as it is`, () => {
        const state = passwordFrom(secret({ password: base64(password) }, WATCHED), REF, RULES);
        assert.deepEqual(state, { password, isLabelled: true });
      });
    }

    for (const labels of [undefined, {}, { [INSTANCE_LABEL]: 'other' }]) {
      it(`in a Secret with the labels ${JSON.stringify(labels)} does not change at once`, () => {
        assert.deepEqual(passwordFrom(secret({ password: base64('12345678') }, labels), REF, RULES), {
          password: '12345678',
          isLabelled: false,
        });
      });
    }

    const LABEL_HINT =
      'With the label lldap-operator.lukidoescode.com/lldap-instance: main, the operator notices changes of the Secret at once.';
    it('that is refused needs no hint at the label where the Secret has it', () => {
      const state = passwordFrom(secret({ password: '' }, WATCHED), REF, RULES);
      assert.ok(state instanceof Failure);
      assert.deepEqual(told(state), tooShort);
    });

    const noKey: [string, string, string] = [
      'NotReady',
      'SecretKeyMissing',
      'The Secret alice in the namespace team has no key password. Add it, or correct spec.passwordSecretRef.key.',
    ];
    const tooShort: [string, string, string] = [
      'Invalid',
      'PasswordTooShort',
      'The password in the Secret alice, key password, has fewer than 8 characters. Use a longer one.',
    ];
    const noText: [string, string, string] = [
      'Invalid',
      'InvalidValue',
      'The password in the Secret alice, key password, is not UTF-8 text. Use one that is.',
    ];
    const tooLong: [string, string, string] = [
      'Invalid',
      'InvalidValue',
      'The password in the Secret alice, key password, is longer than 10000 bytes. Use a shorter one.',
    ];
    const cases: Record<string, [Secret | undefined, [string, string, string]]> = {
      'is waited for while its Secret does not exist': [
        undefined,
        ['NotReady', 'SecretNotFound', 'The Secret alice does not exist in the namespace team. Create it with the key password.'],
      ],
      'is waited for while its Secret is empty': [secret(), noKey],
      'is waited for while its Secret lacks the key': [secret({ other: base64('12345678') }), noKey],
      'that is empty is refused, which lldap would not': [secret({ password: '' }), tooShort],
      'that is too short is refused': [secret({ password: base64('1234567') }), tooShort],
      'that is too short by its characters is refused, however many bytes': [secret({ password: base64('😀😀😀😀😀😀😀') }), tooShort],
      'that is not text is refused, by us and not by lldap': [secret({ password: base64(Buffer.alloc(20, 0xff)) }), noText],
      'that is longer than lldap takes is refused, by us and not by lldap': [secret({ password: base64('x'.repeat(10_001)) }), tooLong],
      'that is both is refused for its length': [secret({ password: base64(Buffer.alloc(10_001, 0xff)) }), tooLong],
    };
    for (const [name, [from, failure]] of Object.entries(cases)) {
      it(name, () => {
        const state = passwordFrom(from, REF, RULES);
        assert.ok(state instanceof Failure);
        const [category, reason, message] = failure;
        assert.deepEqual(told(state), [category, reason, `${message} ${LABEL_HINT}`]);
      });
    }

    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      it(`under the key ${name} is looked for in the Secret alone`, () => {
        const ref = { ...REF, key: name };
        const none = passwordFrom(secret({}), ref, RULES);
        assert.equal(none instanceof Failure ? none.reason : 'a password', 'SecretKeyMissing');
        const data = JSON.parse(`{"${name}":"${base64('12345678')}"}`) as Record<string, string>;
        assert.deepEqual(passwordFrom(secret(data, WATCHED), ref, RULES), { password: '12345678', isLabelled: true });
      });
    }
  });
});
