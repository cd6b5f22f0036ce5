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

const IDENTITY: Row[] = [
  ['a displayName with spaces, commas and umlauts', { displayName: 'Küche, Süd / 2. OG' }, ACCEPTED],
  ['a displayName of 128 characters', { displayName: 'ä'.repeat(128) }, ACCEPTED],
  ['a displayName of 129 characters', { displayName: 'a'.repeat(129) }, 'spec.displayName: Too long: may not be more than 128'],
  ['an empty displayName', { displayName: '' }, 'spec.displayName in body should be at least 1 chars long'],
  ['a displayName of two lines', { displayName: 'a\nb' }, "a group's name can have no line break"],
  ...[' Spaced', 'Spaced ', '  Spaced  ', ' ', 'Spaced\u00a0'].map(
    (displayName): Row => [
      `the displayName ${JSON.stringify(displayName)}`,
      { displayName },
      `a group's name can neither begin nor end with a blank`,
    ],
  ),
  ['no displayName', { displayName: undefined }, 'spec.displayName: Required value'],
  ...['display_name', 'DisplayName'].map(
    (name): Row => [
      `the attribute ${name}`,
      attributes(name),
      "spec.attributes[0].name: Forbidden: the group's name belongs into spec.displayName; remove it from the attributes",
    ],
  ),
  ...writtenByLldapAlone('group_id', 'uuid', 'creation_date', 'Modified_Date'),
];

const from = (namespaces: object) => ({ allowedMemberships: { namespaces } });
const selecting = (selector: object) => from({ from: 'Selector', selector });
const blue = { 'kubernetes.io/metadata.name': 'blue' };

const CONSENT: Row[] = [
  ['memberships of its own namespace alone', from({ from: 'Same' }), ACCEPTED],
  ['memberships of every namespace', from({ from: 'All' }), ACCEPTED],
  ['memberships of a namespace by name', selecting({ matchLabels: blue }), ACCEPTED],
  [
    'memberships of namespaces by expressions',
    selecting({
      matchExpressions: [
        { key: 'team', operator: 'In', values: ['blue', 'red'] },
        { key: 'example.com/retired', operator: 'DoesNotExist' },
      ],
    }),
    ACCEPTED,
  ],
  ['allowedMemberships without namespaces', { allowedMemberships: {} }, 'spec.allowedMemberships.namespaces: Required value'],
  ['namespaces without from', from({}), 'spec.allowedMemberships.namespaces.from: Required value'],
  ['memberships from nowhere', from({ from: 'None' }), 'supported values: "Same", "All", "Selector"'],
  ['Selector without a selector', from({ from: 'Selector' }), 'from: Selector needs a selector; add one, or use from: All'],
  ['a selector with All', from({ from: 'All', selector: { matchLabels: blue } }), 'a selector counts only with from: Selector'],
  ['an empty selector', selecting({}), 'an empty selector would select every namespace; use from: All for that'],
  ['a selector with no label', selecting({ matchLabels: {} }), 'an empty selector would select every namespace'],
  ['In without values', selecting({ matchExpressions: [{ key: 'team', operator: 'In' }] }), 'In and NotIn need values'],
  [
    'Exists with values',
    selecting({ matchExpressions: [{ key: 'team', operator: 'Exists', values: ['blue'] }] }),
    'Exists and DoesNotExist have none',
  ],
];

const CHANGES: Row[] = [
  ['its displayName, which renames the group', { displayName: 'Another' }, ACCEPTED],
  ['everything else', { ...attributes('floor'), suspend: true, deletionPolicy: 'Delete', ...from({ from: 'All' }) }, ACCEPTED],
];

describe('an LldapGroup', () => {
  const bench = useBench('crds-group');
  const least = LEAST_SPEC.LldapGroup;
  createTable(bench, 'LldapGroup', least, [...IDENTITY, ...CONSENT, ...ATTRIBUTES, ...COMMON]);
  changeTable(bench, 'LldapGroup', least, CHANGES);
});
