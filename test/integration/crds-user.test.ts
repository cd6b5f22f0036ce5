import assert from 'node:assert/strict';
import { LEAST_SPEC } from '../local/kube/crds.ts';
import {
  ACCEPTED,
  ATTRIBUTES,
  attributes,
  COMMON,
  changeTable,
  createTable,
  type Row,
  useBench,
  writtenByLldapAlone,
} from './support/crds.ts';

const REF = { name: 'bob-password', key: 'password' };

const IDENTITY: Row[] = [
  ['a username of letters, digits, dots, dashes and underscores', { username: 'B.o-b_9' }, ACCEPTED],
  ['a username of 64 characters', { username: 'b'.repeat(64) }, ACCEPTED],
  ['a username of 65 characters', { username: 'b'.repeat(65) }, 'spec.username: Too long: may not be more than 64'],
  ['an empty username', { username: '' }, 'spec.username in body should be at least 1 chars long'],
  ...['b ob', 'bob@example.com', 'bøb'].map(
    (username): Row => [
      `the username ${username}, and is told which characters it can have`,
      { username },
      `spec.username: Invalid value: "${username}": a username can have only the letters a to z in either case, digits, '.', '_' and '-'`,
    ],
  ),
  ['no username', { username: undefined }, 'spec.username: Required value'],
  ['an e-mail of 3 characters', { email: 'a@b' }, ACCEPTED],
  ['an e-mail of 320 characters', { email: 'a'.repeat(320) }, ACCEPTED],
  ['an e-mail of 2 characters', { email: 'ab' }, 'spec.email in body should be at least 3 chars long'],
  ['an e-mail of 321 characters', { email: 'a'.repeat(321) }, 'spec.email: Too long: may not be more than 320'],
  ['no e-mail', { email: undefined }, 'spec.email: Required value'],
  ['empty names, which clear them', { displayName: '', firstName: '', lastName: '' }, ACCEPTED],
  ['names of 255 characters', { displayName: 'ä'.repeat(255), firstName: 'b'.repeat(255), lastName: 'c'.repeat(255) }, ACCEPTED],
  ['a displayName of 256 characters', { displayName: 'a'.repeat(256) }, 'spec.displayName: Too long: may not be more than 255'],
  ['a firstName of 256 characters', { firstName: 'a'.repeat(256) }, 'spec.firstName: Too long: may not be more than 255'],
  ['a lastName of 256 characters', { lastName: 'a'.repeat(256) }, 'spec.lastName: Too long: may not be more than 255'],
];

const NO_SECRET =
  'spec.passwordSecretRef: Required value: name the Secret and the key that hold the password, or set spec.passwordPolicy to Ignore';

const PASSWORD: Row[] = [
  ['the policy Manage with a Secret', { passwordPolicy: 'Manage', passwordSecretRef: REF }, ACCEPTED],
  ['the policy InitialOnly with a Secret', { passwordPolicy: 'InitialOnly', passwordSecretRef: REF }, ACCEPTED],
  ['the policy Ignore with a Secret', { passwordPolicy: 'Ignore', passwordSecretRef: REF }, ACCEPTED],
  ['no policy with a Secret', { passwordPolicy: undefined, passwordSecretRef: REF }, ACCEPTED],
  ['the policy Ignore without a Secret', { passwordPolicy: 'Ignore' }, ACCEPTED],
  ['neither policy nor Secret', { passwordPolicy: undefined }, NO_SECRET],
  ['the policy Manage without a Secret', { passwordPolicy: 'Manage' }, NO_SECRET],
  ['the policy InitialOnly without a Secret', { passwordPolicy: 'InitialOnly' }, NO_SECRET],
  ['an unknown policy', { passwordPolicy: 'Always' }, 'spec.passwordPolicy: Unsupported value: "Always": supported values: "Manage"'],
  ['a Secret without a key', { passwordSecretRef: { name: 'a' } }, 'spec.passwordSecretRef.key: Required value'],
  ['a Secret without a name', { passwordSecretRef: { key: 'a' } }, 'spec.passwordSecretRef.name: Required value'],
  ['a name that no Secret can have', { passwordSecretRef: { name: 'A_b', key: 'a' } }, 'the name of a Secret can have only the letters'],
  ['a key that no Secret can have', { passwordSecretRef: { name: 'a', key: 'a/b' } }, 'a key of a Secret can have only the letters'],
];

const beside = (name: string, field: string): Row => [
  `the attribute ${name} beside ${field}`,
  { [field]: '', ...attributes(name) },
  `means the same as spec.${field}, which is set too; keep one of the two`,
];

const SAME_MEANING: Row[] = [
  ['display_name, first_name and last_name, with no field beside them', attributes('display_name', 'first_name', 'last_name'), ACCEPTED],
  ['the attribute first_name beside displayName', { displayName: 'B', ...attributes('first_name') }, ACCEPTED],
  ['the attribute avatar', attributes('avatar'), ACCEPTED],
  beside('display_name', 'displayName'),
  beside('DisplayName', 'displayName'),
  beside('first_name', 'firstName'),
  beside('Last_Name', 'lastName'),
  ...['mail', 'Email'].map(
    (name): Row => [
      `the attribute ${name}`,
      attributes(name),
      'spec.attributes[0].name: Forbidden: set the e-mail address in spec.email, and remove mail from the attributes',
    ],
  ),
  ...writtenByLldapAlone('user_id', 'uuid', 'UUID', 'creation_date', 'modified_date', 'password_modified_date'),
];

const CHANGES: Row[] = [
  ['the case of the username', { username: 'PROBE' }, ACCEPTED],
  [
    'the username',
    { username: 'carol' },
    'spec.username: Forbidden: username cannot be changed from probe to carol, since lldap cannot rename users; ' +
      'create another LldapUser with the new username and delete this one',
  ],
  [
    'everything else',
    { email: 'new@example.com', displayName: 'New', ...attributes('floor'), suspend: true, deletionPolicy: 'Retain' },
    ACCEPTED,
  ],
  ['the password policy together with the Secret', { passwordPolicy: 'Manage', passwordSecretRef: REF }, ACCEPTED],
  ['the password policy so that a Secret is missing', { passwordPolicy: 'Manage' }, NO_SECRET],
];

describe('an LldapUser', () => {
  const bench = useBench('crds-user');
  const least = LEAST_SPEC.LldapUser;
  createTable(bench, 'LldapUser', least, [...IDENTITY, ...PASSWORD, ...ATTRIBUTES, ...SAME_MEANING, ...COMMON]);
  changeTable(bench, 'LldapUser', least, CHANGES);

  it('with a photo of 1 MB is applied with --server-side; without, it does not fit the annotation in which kubectl keeps a copy', async () => {
    const spec = { ...least, attributes: [{ name: 'avatar', value: ['x'.repeat(1_000_000)] }] };
    const input = JSON.stringify(bench().manifest('LldapUser', spec));
    const apply = (...flags: string[]) => bench().cluster.kubectl(['apply', '-n', bench().namespace, ...flags, '-f', '-'], { input });
    assert.match((await apply()).stderr, /metadata\.annotations: Too long: may not be more than 262144 bytes/);
    assert.match((await apply('--server-side')).stdout, / serverside-applied/);
  });
});
