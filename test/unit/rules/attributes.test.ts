import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AttributeType, AttributeValue } from '../../../shared/kube/resources.ts';
import type { AttributeChange } from '../../../shared/lldap/api.ts';
import { canonical, checkAttributes, type Definitions, diffAttributes } from '../../../shared/rules/attributes.ts';
import { told } from '../support/examples.ts';

const DEFINITIONS: Definitions = new Map([
  ['nick', { type: 'String', isList: false, isReadonly: false }],
  ['tags', { type: 'String', isList: true, isReadonly: false }],
  ['shoe-size', { type: 'Integer', isList: false, isReadonly: false }],
  ['scores', { type: 'Integer', isList: true, isReadonly: false }],
  ['born', { type: 'DateTime', isList: false, isReadonly: false }],
  ['face', { type: 'JpegPhoto', isList: false, isReadonly: false }],
  ['uuid', { type: 'String', isList: false, isReadonly: true }],
]);
/** The start of a JPEG, in base64. */
const JPEG = '/9j/4AAQSkZJRg==';

describe('shared/rules/attributes', () => {
  describe('a value is accepted', () => {
    const values: Record<AttributeType, string[]> = {
      String: ['', ' a  b ', 'ä\u0000\n', '5'],
      Integer: ['0', '5', '+5', '05', '-0', '-17', '9223372036854775807', '-9223372036854775808'],
      DateTime: [
        '2024-01-02T03:04:05Z',
        '2024-01-02T03:04:05+00:00',
        '2024-01-02T03:04:05-00:00',
        '2024-01-02t03:04:05z',
        '2024-01-02 03:04:05Z',
        '2024-01-02T03:04:05.123456789Z',
        '2016-12-31T23:59:60Z',
        '2024-02-29T00:00:00Z',
        '0001-01-01T00:00:00Z',
        '0004-02-29T00:00:00Z',
        '0000-01-01T00:00:00Z',
        '0000-02-29T00:00:00Z',
        '0001-01-01T00:00:00+01:00',
        '9999-12-31T23:59:59Z',
      ],
      JpegPhoto: [JPEG, '/9j/', '/9j/4AA='],
    };
    for (const [type, texts] of Object.entries(values)) {
      for (const text of texts)
        it(`as ${type}: ${JSON.stringify(text).slice(0, 80)}`, () => assert.notEqual(canonical(type as AttributeType, text), undefined));
    }
  });

  describe('a value that lldap would refuse is not', () => {
    const values: Record<Exclude<AttributeType, 'String'>, string[]> = {
      Integer: [
        '',
        ' 5',
        '5 ',
        '5.0',
        '1e3',
        '0x10',
        '1_000',
        '9223372036854775808',
        '-9223372036854775809',
        '9'.repeat(1_000_000),
        '+',
        '-',
        '٣',
        '--5',
      ],
      DateTime: [
        '',
        'now',
        '2024-01-02',
        '2024-01-02T03:04Z',
        '2024-01-02T03:04:05',
        '2024-01-02T03:04:05+0200',
        '2024-01-02T24:00:00Z',
        '2024-01-02T03:60:05Z',
        '2024-01-02T03:04:61Z',
        '2024-02-30T00:00:00Z',
        '2024-04-31T00:00:00Z',
        '2023-02-29T00:00:00Z',
        '2024-13-01T00:00:00Z',
        '2024-00-01T00:00:00Z',
        '2024-01-00T00:00:00Z',
        '10000-01-01T00:00:00Z',
        '20240102030405Z',
        '1704164645',
        '2024-01-02T03:04:05+24:00',
        '2024-01-02T03:04:05+01:60',
        '2024-01-02T03:04:05.Z',
        '9999-12-31T23:59:59-05:00',
        '0000-01-01T00:00:00+00:01',
        '0100-02-29T00:00:00Z',
      ],
      JpegPhoto: [
        '',
        'iVBORw0KGgo=',
        `${JPEG}\n`,
        `data:image/jpeg;base64,${JPEG}`,
        '_9j_4AAQSkZJRg==',
        '/9j/4AAQSkZJRg',
        '/9j/4AAQ=kZJRg==',
        '/9j/4AAQSkZJRh==',
        '/9j/4AAQSkZJRg===',
        ` ${JPEG}`,
        JPEG.replace(/.{8}/g, '$&\n'),
      ],
    };
    for (const [type, texts] of Object.entries(values)) {
      for (const text of texts)
        it(`as ${type}: ${JSON.stringify(text).slice(0, 80)}`, () => assert.equal(canonical(type as AttributeType, text), undefined));
    }
  });

  describe('two spellings mean the same', () => {
    const pairs: [AttributeType, string, string][] = [
      ['Integer', '+5', '5'],
      ['Integer', '05', '5'],
      ['Integer', '-0', '0'],
      ['DateTime', '2024-01-02T03:04:05Z', '2024-01-02T03:04:05+00:00'],
      ['DateTime', '2024-01-02T03:04:05+02:00', '2024-01-02T01:04:05+00:00'],
      ['DateTime', '2024-01-02T23:04:05-05:00', '2024-01-03T04:04:05+00:00'],
      ['DateTime', '2024-01-02T03:04:05.1Z', '2024-01-02T03:04:05.100+00:00'],
      ['DateTime', '2024-01-02T03:04:05.000Z', '2024-01-02T03:04:05+00:00'],
      ['DateTime', '2024-01-02T03:04:05.1234567891Z', '2024-01-02T03:04:05.123456789+00:00'],
      ['DateTime', '2016-12-31T23:59:60Z', '2016-12-31T23:59:60+00:00'],
    ];
    for (const [type, one, other] of pairs) it(`${one} and ${other}`, () => assert.equal(canonical(type, one), canonical(type, other)));
  });

  describe('two values differ', () => {
    const pairs: [AttributeType, string, string][] = [
      ['String', '5', '05'],
      ['String', 'a', 'A'],
      ['Integer', '9223372036854775807', '9223372036854775806'],
      ['DateTime', '2024-01-02T03:04:05.123456789Z', '2024-01-02T03:04:05.123456788Z'],
      ['DateTime', '2016-12-31T23:59:60Z', '2016-12-31T23:59:59Z'],
      ['DateTime', '2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'],
      ['DateTime', '2024-01-02T03:04:05Z', '2024-01-02T03:04:05+01:00'],
      ['JpegPhoto', JPEG, '/9j/4AAQSkZJRw=='],
    ];
    for (const [type, one, other] of pairs) it(`${one} and ${other}`, () => assert.notEqual(canonical(type, one), canonical(type, other)));
  });

  it('every moment has one spelling, whatever its zone', () => {
    const moments = fc.date({ min: new Date('0002-01-01T00:00:00Z'), max: new Date('9998-12-31T00:00:00Z'), noInvalidDate: true });
    fc.assert(
      fc.property(moments, fc.integer({ min: -1439, max: 1439 }), (moment, offset) => {
        const local = new Date(moment.getTime() + offset * 60_000).toISOString().replace('Z', '');
        const minutes = Math.abs(offset);
        const zone = `${offset < 0 ? '-' : '+'}${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
        assert.equal(canonical('DateTime', `${local}${zone}`), canonical('DateTime', moment.toISOString()));
        assert.notEqual(canonical('DateTime', moment.toISOString()), undefined);
      }),
    );
  });

  describe('the spec is refused with the name, the value and the remedy', () => {
    const cases: Record<string, [AttributeValue[], [string, string]]> = {
      'for an attribute that lldap keeps itself': [
        [{ name: 'uuid', value: ['1'] }],
        ['ReadOnlyAttribute', 'spec.attributes: lldap maintains the attribute uuid itself. Remove it from the spec.'],
      ],
      'for several values of what is no list': [
        [{ name: 'Nick', value: ['a', 'b'] }],
        [
          'InvalidValue',
          'spec.attributes: Nick has 2 values, but its definition is not a list. Give one value, or define the attribute with isList: true.',
        ],
      ],
      'for what is no number': [
        [{ name: 'shoe-size', value: ['large'] }],
        [
          'InvalidValue',
          'spec.attributes: shoe-size is "large", which is not a whole number from -9223372036854775808 to 9223372036854775807, in digits. Correct the value.',
        ],
      ],
      'for the one wrong value of a list': [
        [{ name: 'scores', value: ['1', 'two', '3'] }],
        [
          'InvalidValue',
          'spec.attributes: scores is "two", which is not a whole number from -9223372036854775808 to 9223372036854775807, in digits. Correct the value.',
        ],
      ],
      'for an empty value among others': [
        [{ name: 'scores', value: ['1', ''] }],
        [
          'InvalidValue',
          'spec.attributes: scores is "", which is not a whole number from -9223372036854775808 to 9223372036854775807, in digits. Correct the value.',
        ],
      ],
      'for what is no time': [
        [{ name: 'born', value: ['2024-01-02'] }],
        [
          'InvalidValue',
          'spec.attributes: born is "2024-01-02", which is not a time in the years 0000 to 9999 (UTC) with its zone, like 2026-01-31T12:00:00Z. Correct the value.',
        ],
      ],
      'for what is no picture, of which it shows the start': [
        [{ name: 'face', value: ['x'.repeat(100)] }],
        [
          'InvalidValue',
          `spec.attributes: face is "${'x'.repeat(60)}…", which is not a JPEG picture in base64 with its padding and without line breaks. Correct the value.`,
        ],
      ],
      'for the first wrong attribute of several': [
        [
          { name: 'nick', value: ['Al'] },
          { name: 'uuid', value: ['1'] },
          { name: 'born', value: ['x'] },
        ],
        ['ReadOnlyAttribute', 'spec.attributes: lldap maintains the attribute uuid itself. Remove it from the spec.'],
      ],
    };
    for (const [name, [desired, [reason, message]]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(told(checkAttributes(desired, DEFINITIONS)), ['Invalid', reason, message]));
    }
  });

  it('the spec is accepted where every value fits, and where values are cleared', () => {
    const desired = [
      { name: 'NICK', value: ['Al'] },
      { name: 'tags', value: ['b', 'a', 'a', ''] },
      { name: 'shoe-size', value: [''] },
      { name: 'born', value: [] },
      { name: 'face', value: [JPEG] },
      { name: 'undefined-yet', value: ['a', 'b'] },
    ];
    assert.equal(checkAttributes(desired, DEFINITIONS), undefined);
    assert.equal(checkAttributes([], DEFINITIONS), undefined);
  });

  describe('of what lldap has, only what differs is written', () => {
    const none: AttributeChange = {};
    const insert = (name: string, value: string[]): AttributeChange => ({ insertAttributes: [{ name, value }] });
    const remove = (name: string): AttributeChange => ({ removeAttributes: [name] });
    const cases: Record<string, [AttributeValue[], AttributeValue[], AttributeChange]> = {
      'nothing for equal values': [[{ name: 'nick', value: ['Al'] }], [{ name: 'nick', value: ['Al'] }], none],
      'nothing for a name in another case': [[{ name: 'NICK', value: ['Al'] }], [{ name: 'nick', value: ['Al'] }], none],
      'nothing for what the spec does not name': [[], [{ name: 'nick', value: ['Al'] }], none],
      'nothing for another spelling of a number': [[{ name: 'shoe-size', value: ['+042'] }], [{ name: 'shoe-size', value: ['42'] }], none],
      'nothing for another spelling of a time': [
        [{ name: 'born', value: ['2024-01-02T03:04:05+02:00'] }],
        [{ name: 'born', value: ['2024-01-02T01:04:05+00:00'] }],
        none,
      ],
      'a value that is missing': [[{ name: 'Nick', value: ['Al'] }], [], insert('nick', ['Al'])],
      'a value that is another': [[{ name: 'nick', value: ['Al'] }], [{ name: 'nick', value: ['al'] }], insert('nick', ['Al'])],
      'a list in another order': [[{ name: 'tags', value: ['a', 'b'] }], [{ name: 'tags', value: ['b', 'a'] }], insert('tags', ['a', 'b'])],
      'a list that is longer': [[{ name: 'tags', value: ['a'] }], [{ name: 'tags', value: ['a', 'a'] }], insert('tags', ['a'])],
      'a list of two empty texts, which is not the same as none': [[{ name: 'tags', value: ['', ''] }], [], insert('tags', ['', ''])],
      'the removal of what the spec clears by an empty list': [
        [{ name: 'Nick', value: [] }],
        [{ name: 'nick', value: ['Al'] }],
        remove('nick'),
      ],
      'the removal of what the spec clears by an empty text': [
        [{ name: 'nick', value: [''] }],
        [{ name: 'nick', value: ['Al'] }],
        remove('nick'),
      ],
      'nothing for what is cleared and absent': [[{ name: 'nick', value: [''] }], [], none],
      'nothing for what is cleared and stored as an empty list': [[{ name: 'tags', value: [] }], [{ name: 'tags', value: [] }], none],
      'nothing for what is cleared and stored as an empty text': [[{ name: 'tags', value: [] }], [{ name: 'tags', value: [''] }], none],
      'as texts where no definition is known': [[{ name: 'new', value: ['05'] }], [{ name: 'new', value: ['5'] }], insert('new', ['05'])],
    };
    for (const [name, [desired, observed, change]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(diffAttributes(desired, observed, DEFINITIONS), change));
    }

    it('and once it is written, nothing any more', () => {
      const values = fc.array(fc.constantFrom('', 'a', 'A', '5', '05', '2024-01-02T03:04:05Z'), { maxLength: 3 });
      const attributes = fc.uniqueArray(fc.record({ name: fc.constantFrom('nick', 'tags', 'scores', 'born', 'new'), value: values }), {
        selector: ({ name }) => name,
      });
      fc.assert(
        fc.property(attributes, attributes, (desired, observed) => {
          if (checkAttributes(desired, DEFINITIONS)) return;
          const { insertAttributes = [], removeAttributes = [] } = diffAttributes(desired, observed, DEFINITIONS);
          const written = [...removeAttributes, ...insertAttributes.map(({ name }) => name)];
          const after = [...observed.filter(({ name }) => !written.includes(name)), ...insertAttributes];
          assert.deepEqual(diffAttributes(desired, after, DEFINITIONS), none);
        }),
      );
    });
  });
});
