import assert from 'node:assert/strict';
import { standaloneValidators } from '../../../shared/lldap/build-validators.ts';
import * as compiled from '../../../shared/lldap/validate.ts';

const account = {
  id: 'bob',
  email: 'bob@example.com',
  uuid: 'u-1',
  attributes: [{ name: 'a', value: ['1', ''] }],
  groups: [{ id: 4, uuid: 'g-4', displayName: 'G' }],
};
const group = { id: 4, uuid: 'g-4', displayName: 'G', attributes: [] };
const definition = {
  name: 'a',
  attributeType: 'DATE_TIME',
  isList: false,
  isVisible: true,
  isEditable: false,
  isHardcoded: false,
  isReadonly: false,
};
const result = (value: unknown) => ({ data: { result: value } });

const CASES: Record<keyof typeof compiled, { good: unknown[]; bad: unknown[] }> = {
  isLoginAnswer: {
    good: [{ token: 't', refreshToken: 'r', more: 1 }],
    bad: [undefined, {}, { token: 't' }, { token: '', refreshToken: 'r' }],
  },
  isRefreshAnswer: { good: [{ token: 't' }], bad: [{ token: 1 }, 'text', null] },
  isClaims: {
    good: [{ iat: 1, exp: 2, groups: ['x'] }],
    bad: [
      { iat: 1, exp: 2 },
      { iat: '1', exp: 2, groups: [] },
      { iat: 1, exp: 2, groups: [1] },
    ],
  },
  isErrorAnswer: {
    good: [
      { data: null, errors: [{ message: 'm', path: [] }] },
      { ...result({ ok: true }), errors: [{ message: 'm' }] },
    ],
    bad: [{ errors: [] }, { errors: [{}] }, result(1)],
  },
  isVersionAnswer: { good: [result('1.0')], bad: [result(1), { data: null }] },
  isUserAnswer: {
    good: [result(account)],
    bad: [result(null), result({ ...account, uuid: '' }), result({ ...account, groups: [{ id: 1.5, uuid: 'g', displayName: '' }] })],
  },
  isUsersAnswer: {
    good: [result([]), result([account, account])],
    bad: [result(account), result([{ ...account, attributes: [{ name: 'a', value: 'b' }] }])],
  },
  isGroupAnswer: {
    good: [result(group)],
    bad: [result({ ...group, id: '4' }), result({ ...group, id: 2 ** 31 }), result({ ...group, attributes: undefined })],
  },
  isGroupsAnswer: { good: [result([group])], bad: [result([null]), result(group)] },
  isGroupNamesAnswer: { good: [result([{ id: 4, uuid: 'g', displayName: 'Crew' }])], bad: [result([{ id: 4, uuid: 'g' }]), result(group)] },
  isSchemaAnswer: {
    good: [result({ userSchema: { attributes: [definition] }, groupSchema: { attributes: [] } })],
    bad: [
      result({ userSchema: { attributes: [] } }),
      result({ userSchema: { attributes: [{ ...definition, attributeType: 'FLOAT' }] }, groupSchema: { attributes: [] } }),
    ],
  },
  isSuccessAnswer: {
    good: [result({ ok: true }), { ...result({ ok: true }), errors: [] }, { ...result({ ok: true }), errors: null }],
    bad: [
      result({}),
      result({ ok: 'true' }),
      ...[[{ message: 'm' }], [{}], ['m'], [null], 'm', { message: 'm' }].map((errors) => ({ ...result({ ok: true }), errors })),
    ],
  },
};

describe("the validators of lldap's answers", () => {
  const validators = { ...compiled };

  it('built for a bundle are those of the source, and need no ajv', async () => {
    const source = await standaloneValidators();
    assert.doesNotMatch(source, /\brequire\b|\bimport\b/);
    const built = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    assert.deepEqual(Object.keys(built).sort(), Object.keys(compiled).sort());
    for (const [name, { good, bad }] of Object.entries(CASES)) {
      for (const answer of good) assert.equal(built[name](answer), true, `${name} ${JSON.stringify(answer)}`);
      for (const answer of bad) assert.equal(built[name](answer), false, `${name} ${JSON.stringify(answer)}`);
    }
  });

  for (const [name, { good, bad }] of Object.entries(CASES)) {
    it(`${name} accepts what lldap promises and nothing less`, () => {
      const validate = validators[name as keyof typeof compiled];
      for (const answer of good) assert.equal(validate(answer), true, JSON.stringify(answer));
      for (const answer of bad) assert.equal(validate(answer), false, JSON.stringify(answer));
    });
  }
});
