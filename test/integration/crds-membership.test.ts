import { LEAST_SPEC } from '../local/kube/crds.ts';
import { ACCEPTED, COMMON, changeTable, createTable, type Row, useBench } from './support/crds.ts';

const WORDS = { userName: "a user's id", groupName: "a group's name" };

const name = (field: 'userName' | 'groupName'): Row[] => [
  [`a ${field} that was made in lldap by hand`, { [field]: 'Frau Müller, EDV @ Süd' }, ACCEPTED],
  [`a ${field} of 255 characters`, { [field]: 'ä'.repeat(255) }, ACCEPTED],
  [`a ${field} of 256 characters`, { [field]: 'a'.repeat(256) }, `spec.${field}: Too long: may not be more than 255`],
  [`an empty ${field}`, { [field]: '' }, `spec.${field} in body should be at least 1 chars long`],
  [`a ${field} of two lines`, { [field]: 'a\nb' }, `${WORDS[field]} can have no line break`],
  ...[' Spaced', 'Spaced '].map(
    (given): Row => [`the ${field} ${JSON.stringify(given)}`, { [field]: given }, `${WORDS[field]} can neither begin nor end with a blank`],
  ),
  [`no ${field}`, { [field]: undefined }, `spec.${field}: Required value`],
];

const change = (field: 'userName' | 'groupName'): Row[] => [
  [`the case of its ${field}`, { [field]: 'PROBE' }, ACCEPTED],
  [
    `its ${field}`,
    { [field]: 'other' },
    `spec.${field}: Forbidden: ${field} cannot be changed from probe to other; create another LldapMembership for the new pair and delete this one`,
  ],
];

describe('an LldapMembership', () => {
  const bench = useBench('crds-membership');
  const least = LEAST_SPEC.LldapMembership;
  createTable(bench, 'LldapMembership', least, [...name('userName'), ...name('groupName'), ...COMMON]);
  changeTable(bench, 'LldapMembership', least, [
    ...change('userName'),
    ...change('groupName'),
    ['everything else', { suspend: true, deletionPolicy: 'Retain' }, ACCEPTED],
  ]);
});
