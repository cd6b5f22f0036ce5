import { LEAST_SPEC } from '../local/kube/crds.ts';
import { ACCEPTED, COMMON, changeTable, createTable, type Row, useBench } from './support/crds.ts';

/** lldap would define these as well, and break on them. */
const CLASHES = [
  'avatar',
  'mail',
  'email',
  'uid',
  'id',
  'uuid',
  'dn',
  'cn',
  'sn',
  'givenname',
  'displayname',
  'memberof',
  'objectclass',
  'userpassword',
];

const DEFINITION: Row[] = [
  ['an attributeName of letters, digits and dashes', { attributeName: 'Floor-2' }, ACCEPTED],
  ['an attributeName of 64 characters', { attributeName: 'a'.repeat(64) }, ACCEPTED],
  ['an attributeName of 65 characters', { attributeName: 'a'.repeat(65) }, 'spec.attributeName: Too long: may not be more than 64'],
  ['an empty attributeName', { attributeName: '' }, 'spec.attributeName in body should be at least 1 chars long'],
  ...['foo_bar', '2nd', 'größe'].map(
    (attributeName): Row => [
      `the attributeName ${attributeName}, and is told which characters it can have`,
      { attributeName },
      `spec.attributeName: Invalid value: "${attributeName}": an attributeName begins with a letter and can have only the letters a to z in ` +
        "either case, digits and '-'; lldap defines no attribute with '_' in its name",
    ],
  ),
  ['no attributeName', { attributeName: undefined }, 'spec.attributeName: Required value'],
  ...[...CLASHES, 'givenName', 'MAIL'].map(
    (attributeName): Row => [
      `the attributeName ${attributeName}`,
      { attributeName },
      `spec.attributeName: Forbidden: lldap has its own meaning for the name ${attributeName}; choose another one`,
    ],
  ),
  [
    "the operator's mark as attributeName",
    { attributeName: 'K8S-owner' },
    "spec.attributeName: Forbidden: k8s-owner is the operator's own mark, which it defines itself; choose another name",
  ],
  ...['String', 'Integer', 'JpegPhoto', 'DateTime'].map((attributeType): Row => [`the type ${attributeType}`, { attributeType }, ACCEPTED]),
  ['an unknown type', { attributeType: 'Float' }, 'spec.attributeType: Unsupported value: "Float": supported values: "String"'],
  ['no type', { attributeType: undefined }, 'spec.attributeType: Required value'],
  ...['User', 'Group'].map((target): Row => [`the target ${target}`, { target }, ACCEPTED]),
  ['an unknown target', { target: 'Both' }, 'spec.target: Unsupported value: "Both": supported values: "User", "Group"'],
  ['no target', { target: undefined }, 'spec.target: Required value'],
  ['all flags', { isList: true, isVisible: true, isEditable: true }, ACCEPTED],
  ['an attribute that users may set but not see, as lldap may have one', { isVisible: false, isEditable: true }, ACCEPTED],
  ['a flag as a text', { isList: 'true' }, 'spec.isList in body must be of type boolean'],
];

const REMEDY = ', since lldap cannot change a definition; delete this resource, which deletes all values, and create another one';

const CHANGES: Row[] = [
  ['the case of its attributeName', { attributeName: 'PROBE' }, ACCEPTED],
  [
    'its attributeName',
    { attributeName: 'other' },
    `spec.attributeName: Forbidden: attributeName cannot be changed from probe to other${REMEDY}`,
  ],
  [
    'its type',
    { attributeType: 'Integer' },
    `spec.attributeType: Forbidden: attributeType cannot be changed from String to Integer${REMEDY}`,
  ],
  ['its target', { target: 'Group' }, `spec.target: Forbidden: target cannot be changed from User to Group${REMEDY}`],
  ...['isList', 'isVisible', 'isEditable'].map(
    (flag): Row => [
      `its ${flag}, which was left out before`,
      { [flag]: true },
      `spec.${flag}: Forbidden: ${flag} cannot be changed${REMEDY}`,
    ],
  ),
  ['a flag to what it was by default', { isList: false }, ACCEPTED],
  ['everything else', { suspend: true, deletionPolicy: 'Retain' }, ACCEPTED],
];

describe('an LldapAttributeSchema', () => {
  const bench = useBench('crds-schema');
  const least = LEAST_SPEC.LldapAttributeSchema;
  createTable(bench, 'LldapAttributeSchema', least, [...DEFINITION, ...COMMON]);
  changeTable(bench, 'LldapAttributeSchema', least, CHANGES);
});
