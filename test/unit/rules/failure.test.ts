import assert from 'node:assert/strict';
import { LldapError, type LldapErrorKind } from '../../../shared/lldap/api.ts';
import { invalid, notReady, taken, toFailure } from '../../../shared/rules/failure.ts';
import { told } from '../support/examples.ts';

describe('shared/rules/failure', () => {
  const kinds: Record<LldapErrorKind, [category: string, reason: string]> = {
    unavailable: ['Unavailable', 'LldapUnavailable'],
    notFound: ['Unavailable', 'LldapUnavailable'],
    unauthenticated: ['Unauthenticated', 'LldapUnauthenticated'],
    unauthorized: ['Unauthenticated', 'LldapUnauthorized'],
    exists: ['Taken', 'NameTaken'],
    undefinedAttribute: ['NotReady', 'DependencyNotReady'],
    refused: ['Invalid', 'RefusedByLldap'],
    protected: ['Invalid', 'Protected'],
    unforeseen: ['Bug', 'InternalError'],
  };
  for (const [kind, decision] of Object.entries(kinds)) {
    it(`${kind} of lldap becomes ${decision.join(' ')}, and says what lldap said`, () => {
      const failure = toFailure(new LldapError(kind as LldapErrorKind, 'lldap says so', 'shoe-size'));
      assert.deepEqual([failure.category, failure.reason], decision);
      assert.match(
        failure.message,
        kind === 'undefinedAttribute' ? /lldap has no attribute shoe-size\. Create an LldapAttributeSchema for it/ : /lldap says so/i,
      );
    });
  }

  const remedies: Partial<Record<LldapErrorKind, RegExp>> = {
    unavailable: /Check that lldap runs, and LLDAP_URL and LLDAP_LDAP_URL in the ConfigMap lldap-operator\.$/,
    notFound: /^An object that the operator had just read no longer exists in lldap \(x\)\. The operator retries\.$/,
    unauthenticated: /Correct the Secret lldap-operator-credentials/,
    unauthorized: /Add it to lldap_admin/,
  };
  for (const [kind, remedy] of Object.entries(remedies)) {
    it(`${kind} says what an administrator can do`, () =>
      assert.match(toFailure(new LldapError(kind as LldapErrorKind, 'x')).message, remedy));
  }

  it('a refusal names the attribute where lldap does, and says to correct it', () => {
    assert.equal(
      toFailure(new LldapError('refused', 'too large', 'avatar')).message,
      'lldap refused the attribute avatar: too large. Correct it.',
    );
    assert.equal(toFailure(new LldapError('refused', 'too large')).message, 'lldap refused a value: too large. Correct it.');
  });

  it('a decision that was made stays', () => {
    for (const made of [invalid('Forbidden', 'No.'), notReady('SecretNotFound', 'Wait.'), taken('EmailTaken', 'Ask.')])
      assert.equal(toFailure(made), made);
    assert.deepEqual(told(invalid('Forbidden', 'No.')), ['Invalid', 'Forbidden', 'No.']);
    assert.deepEqual(told(notReady('SecretNotFound', 'Wait.')), ['NotReady', 'SecretNotFound', 'Wait.']);
    assert.deepEqual(told(taken('EmailTaken', 'Ask.')), ['Taken', 'EmailTaken', 'Ask.']);
  });

  for (const [name, error] of Object.entries({
    'an error': new TypeError('secret-value is not a function'),
    'no error at all': 'secret-value',
  })) {
    it(`${name} that nobody foresaw is a bug, and nothing of it reaches a status`, () => {
      assert.deepEqual(told(toFailure(error)), ['Bug', 'InternalError', "Unexpected error; see the operator's log. The operator retries."]);
    });
  }
});
