import assert from 'node:assert/strict';
import { Fields } from './fields.ts';
import { triggerFilter } from './filter.ts';

const EVENT = { type: 'dev.knative.apiserver.resource.add', kind: 'LldapUser', name: 'alice', num: '5', empty: '' };

const filterOf = (spec: object) => triggerFilter(new Fields(spec, 'spec'));

describe("A Trigger's filter in the local Knative", () => {
  const table: [string, object, boolean][] = [
    ['no filter at all takes everything', {}, true],
    ['attributes: an equal value', { filter: { attributes: { kind: 'LldapUser', name: 'alice' } } }, true],
    ['attributes: one of two differs', { filter: { attributes: { kind: 'LldapUser', name: 'bob' } } }, false],
    ['attributes: an empty value wants any that is not empty', { filter: { attributes: { kind: '' } } }, true],
    ['attributes: an empty value and an empty attribute', { filter: { attributes: { empty: '' } } }, false],
    ['attributes: an empty value and a missing attribute', { filter: { attributes: { missing: '' } } }, false],
    ['numbers are compared as strings', { filter: { attributes: { num: '5' } } }, true],
    [
      'filters, when there are any, replace filter',
      { filter: { attributes: { kind: 'Other' } }, filters: [{ exact: { name: 'alice' } }] },
      true,
    ],
    ['no filters leave filter in force', { filter: { attributes: { kind: 'Other' } }, filters: [] }, false],
    ['several filters must all match', { filters: [{ exact: { name: 'alice' } }, { exact: { kind: 'Other' } }] }, false],
    ['exact with several keys is AND', { filters: [{ exact: { name: 'alice', kind: 'Other' } }] }, false],
    ['prefix', { filters: [{ prefix: { type: 'dev.knative.' } }] }, true],
    ['suffix', { filters: [{ suffix: { type: '.delete' } }] }, false],
    ['any', { filters: [{ any: [{ exact: { name: 'bob' } }, { suffix: { type: '.add' } }] }] }, true],
    ['all', { filters: [{ all: [{ exact: { name: 'alice' } }, { suffix: { type: '.delete' } }] }] }, false],
    ['not', { filters: [{ not: { exact: { name: 'bob' } } }] }, true],
    ['not of any of cesql', { filters: [{ not: { any: [{ cesql: "name = 'alice'" }] } }] }, false],
    ['cesql', { filters: [{ cesql: "kind = 'LldapUser'" }] }, true],
    ['a misspelt dialect matches everything', { filters: [{ regex: { type: 'nothing' } }] }, true],
    ['an empty value in exact matches everything', { filters: [{ exact: { missing: '' } }] }, true],
    ['an empty any matches everything', { filters: [{ any: [] }] }, true],
    ['a missing attribute never matches exact', { filters: [{ exact: { missing: 'x' } }] }, false],
  ];
  for (const [sentence, spec, matches] of table) {
    it(`${sentence}: ${matches ? 'delivered' : 'not delivered'}`, () => assert.equal(filterOf(spec)(EVENT), matches));
  }

  const refused: [string, object, RegExp][] = [
    ['an attribute name that no event can have', { filters: [{ exact: { 'ce-kind': 'x' } }] }, /not an attribute's name/],
    ['the same in filter', { filter: { attributes: { Kind: 'x' } } }, /not an attribute's name/],
    ['two dialects in one entry', { filters: [{ exact: { kind: 'x' }, cesql: 'TRUE' }] }, /more than one dialect/],
    ['a CESQL syntax error', { filters: [{ cesql: 'kind =' }] }, /CESQL/],
  ];
  for (const [sentence, spec, message] of refused) {
    it(`refuses ${sentence}, as Knative's webhook does`, () => assert.throws(() => filterOf(spec), message));
  }
});
