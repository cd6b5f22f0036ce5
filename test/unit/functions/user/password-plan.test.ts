import assert from 'node:assert/strict';
import { hasPassword, passwordCondition, planPassword } from '../../../../functions/user/password-plan.ts';
import type { Observed } from '../../../../functions/user/plan.ts';
import type { LldapUserStatus } from '../../../../shared/kube/resources.ts';
import type { LldapAccount } from '../../../../shared/lldap/api.ts';
import { notReady } from '../../../../shared/rules/failure.ts';
import { type PasswordKey, passwordHash } from '../../../../shared/rules/password.ts';
import { account, policy, user } from '../../support/examples.ts';

const KEY: PasswordKey = { id: 'key-now', key: Buffer.alloc(32, 1) };
const OLD_KEY: PasswordKey = { id: 'key-old', key: Buffer.alloc(32, 2) };
const CREATED = '2026-03-01T10:00:00+00:00';
const SET = '2026-03-01T11:00:00+00:00';
const LATER = '2026-03-01T11:30:00+00:00';

const dated = (modified: string): LldapAccount =>
  account({
    attributes: [
      { name: 'creation_date', value: [CREATED] },
      { name: 'password_modified_date', value: [modified] },
    ],
  });
const missing = notReady('SecretNotFound', 'The Secret alice does not exist.');
const given = (password = 'correct horse'): Observed['password'] => ({ state: { password, isLabelled: true }, key: KEY });
const absent: Observed['password'] = { state: missing, key: KEY };
const hash = (password = 'correct horse', key = KEY) => passwordHash(key, 'uuid-alice', password);
const recorded = { passwordHash: hash(), passwordModifiedAt: SET };

describe('functions/user/password-plan', () => {
  it('lldap’s dates tell whether a password was ever set', () => {
    assert.equal(hasPassword(dated(CREATED)), false);
    assert.equal(hasPassword(dated(SET)), true);
    assert.equal(hasPassword(account()), false);
  });

  describe('the password is', () => {
    type Step = 'setPassword' | 'verifyOrSetPassword';
    type Policy = 'Manage' | 'InitialOnly' | 'Ignore';
    const cases: Record<string, [Policy | undefined, LldapAccount | undefined, Observed['password'], LldapUserStatus, Step[]]> = {
      'set for a new user': [undefined, undefined, given(), {}, ['setPassword']],
      'set for a user that never had one, whatever the status remembers': ['Manage', dated(CREATED), given(), recorded, ['setPassword']],
      'set after a process died between making the user and setting it': ['InitialOnly', dated(CREATED), given(), {}, ['setPassword']],
      'left when the Secret’s is the one that was set': ['Manage', dated(SET), given(), recorded, []],
      'set when the Secret has changed': ['Manage', dated(SET), given('staple battery'), recorded, ['setPassword']],
      'tried first when somebody else set one': ['Manage', dated(LATER), given(), recorded, ['verifyOrSetPassword']],
      'tried first when the Secret has changed and somebody else set one': [
        'Manage',
        dated(LATER),
        given('staple battery'),
        recorded,
        ['verifyOrSetPassword'],
      ],
      'tried first for an adopted user': ['Manage', dated(SET), given(), {}, ['verifyOrSetPassword']],
      'tried first when the installation’s key was lost': [
        'Manage',
        dated(SET),
        given(),
        { passwordHash: hash('correct horse', OLD_KEY), passwordModifiedAt: SET },
        ['verifyOrSetPassword'],
      ],
      'tried first when the hash was lost': ['Manage', dated(SET), given(), { passwordModifiedAt: SET }, ['verifyOrSetPassword']],
      'left to InitialOnly once one was set, by whomever': ['InitialOnly', dated(SET), given('staple battery'), {}, []],
      'left where the policy is Ignore': ['Ignore', dated(CREATED), undefined, {}, []],
    };
    for (const [name, [passwordPolicy, found, password, draft, steps]] of Object.entries(cases)) {
      it(name, () => {
        const resource = user({ spec: passwordPolicy ? { passwordPolicy } : {} });
        const observed: Observed = { definitions: new Map(), ...(found && { account: found }), ...(password && { password }) };
        const decided = planPassword({ resource, draft, policy: policy() }, observed);
        assert.equal(decided.blockedBy, undefined);
        assert.deepEqual(
          decided.steps,
          steps.map((step) => ({
            do: step,
            password: password && 'password' in password.state && password.state.password,
            key: KEY,
            // What is only tried may have been set meanwhile: the date before is that of the password that worked.
            ...(step === 'verifyOrSetPassword' && {
              modifiedAt: found?.attributes.find((a) => a.name === 'password_modified_date')?.value[0],
            }),
          })),
        );
      });
    }

    for (const [name, found] of Object.entries({ 'a new user': undefined, 'a user that is there': dated(SET) })) {
      it(`waited for where its Secret is missing, and ${name} is not held up by it`, () => {
        const observed: Observed = { definitions: new Map(), password: absent, ...(found && { account: found }) };
        const decided = planPassword({ resource: user(), draft: {}, policy: policy() }, observed);
        assert.deepEqual(decided, { steps: [], blockedBy: missing });
      });
    }
  });

  describe('PasswordSynced says', () => {
    const unwatched: Observed['password'] = { state: { password: 'correct horse', isLabelled: false }, key: KEY };
    const cases: Record<string, [string | undefined, Observed['password'], string[]]> = {
      'that lldap has the Secret’s password': ['Manage', given(), ['True', 'PasswordSynced', "lldap has the Secret's password."]],
      'the same where no policy is given': [undefined, given(), ['True', 'PasswordSynced', "lldap has the Secret's password."]],
      'when a change of an unlabelled Secret is noticed': [
        'Manage',
        unwatched,
        [
          'True',
          'PasswordSynced',
          "lldap has the Secret's password. The Secret has no label lldap-operator.lukidoescode.com/lldap-instance, so the operator notices changes only at the next sweep.",
        ],
      ],
      'that the password ends with a line break': [
        'Manage',
        { state: { password: 'correct horse\n', isLabelled: true }, key: KEY },
        [
          'True',
          'PasswordSynced',
          "lldap has the Secret's password. It ends with a line break, which is part of it: remove it from the Secret if it is not intended.",
        ],
      ],
      'why there is no password': ['Manage', absent, ['False', 'SecretNotFound', 'The Secret alice does not exist.']],
      'why there is no first password': ['InitialOnly', absent, ['False', 'SecretNotFound', 'The Secret alice does not exist.']],
      'that a first password is left as it is': [
        'InitialOnly',
        undefined,
        ['True', 'PasswordInitialOnly', 'passwordPolicy is InitialOnly: a password was set once, and the operator leaves it as it is.'],
      ],
      'the same in the reconcile that sets the first password': [
        'InitialOnly',
        given(),
        ['True', 'PasswordInitialOnly', 'passwordPolicy is InitialOnly: a password was set once, and the operator leaves it as it is.'],
      ],
      'that the password is others’ concern': [
        'Ignore',
        undefined,
        ['Unknown', 'PasswordNotManaged', 'passwordPolicy is Ignore: the operator does not manage the password.'],
      ],
    };
    for (const [name, [passwordPolicy, password, [status, reason, message]]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(passwordCondition(passwordPolicy, password), { status, reason, message }));
    }
  });
});
