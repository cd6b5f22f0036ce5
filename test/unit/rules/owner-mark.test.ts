import assert from 'node:assert/strict';
import fc from 'fast-check';
import { attribute, formatMark, type Mark, markOf, parseMark } from '../../../shared/rules/owner-mark.ts';
import { markFor } from '../../../shared/rules/ownership.ts';
import { policy, user } from '../support/examples.ts';

const OLD: Mark = { instance: 'main', namespace: 'team', name: 'alice', origin: 'created' };
const MARK = { ...OLD, uid: '0b1c-2d' };

describe('shared/rules/owner-mark', () => {
  it('names the installation, the resource and the origin', () => {
    assert.equal(formatMark(MARK), 'v2;main;team/alice;created;0b1c-2d');
    assert.deepEqual(markFor(user({ metadata: { uid: 'u-1' } }), 'adopted', policy()).value, ['v2;main;team/alice;adopted;u-1']);
  });

  it('that an update writes names the object, too', () => {
    const { value } = markFor(user({ metadata: { uid: 'u-1' } }), 'adopted', policy(), '3f-9a');
    assert.deepEqual(value, ['v2;main;team/alice;adopted;u-1;3f-9a']);
  });

  it('is read back as it was written, whatever names Kubernetes allows', () => {
    const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,30}[a-z0-9])?$/);
    const label = fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,30}[A-Za-z0-9])?$/);
    const marks = fc.record(
      {
        instance: label,
        namespace: name,
        name,
        origin: fc.constantFrom('created' as const, 'adopted' as const),
        uid: fc.uuid(),
        objectUuid: fc.uuid(),
      },
      { noNullPrototype: true, requiredKeys: ['instance', 'namespace', 'name', 'origin', 'uid'] },
    );
    fc.assert(fc.property(marks, (mark) => assert.deepEqual(parseMark(formatMark(mark)), mark)));
  });

  it('of the first format, without a uid, is still read', () => assert.deepEqual(parseMark('v1;main;team/alice;created'), OLD));

  const strange: Record<string, string | undefined> = {
    'no value': undefined,
    'an empty text': '',
    'a text of a person': 'alice, do not delete',
    'another version': 'v3;main;team/alice;created;0b1c-2d',
    'the second format without a uid': 'v2;main;team/alice;created',
    'a uid that is none': 'v2;main;team/alice;created;a b',
    'an object that is none': 'v2;main;team/alice;created;0b1c-2d;3f 9a',
    'an object in the first format': 'v1;main;team/alice;created;;3f-9a',
    'no installation': 'v1;;team/alice;created',
    'no namespace': 'v1;main;/alice;created',
    'no name': 'v1;main;team/;created',
    'another origin': 'v1;main;team/alice;stolen',
    'something before': ' v1;main;team/alice;created',
    'something after': 'v1;main;team/alice;created;more',
    'a line after': 'v1;main;team/alice;created\n',
    'a path too many': 'v1;main;team/alice/x;created',
    'an installation too many': 'v1;main;other;team/alice;created',
  };
  for (const [name, text] of Object.entries(strange)) {
    it(`${name} counts as no mark`, () => assert.equal(parseMark(text), undefined));
  }

  it('is found among the attributes of an object in lldap', () => {
    const attributes = [
      { name: 'mail', value: ['a@example.com'] },
      { name: 'k8s-owner', value: [formatMark(MARK)] },
    ];
    assert.deepEqual(markOf({ uuid: '3f-9a', attributes }), MARK);
    assert.equal(markOf({ uuid: '3f-9a', attributes: [] }), undefined);
    assert.equal(markOf({ uuid: '3f-9a', attributes: [{ name: 'k8s-owner', value: [] }] }), undefined);
  });

  it('counts as no mark on another object than the one that it names, to which an update may have carried it', () => {
    const attributes = [{ name: 'k8s-owner', value: [formatMark({ ...MARK, objectUuid: '3f-9a' })] }];
    assert.deepEqual(markOf({ uuid: '3f-9a', attributes }), { ...MARK, objectUuid: '3f-9a' });
    assert.equal(markOf({ uuid: '77-0c', attributes }), undefined);
  });

  it('an attribute has the first of its values', () => {
    const attributes = [{ name: 'phone', value: ['1', '2'] }];
    assert.equal(attribute({ attributes }, 'phone'), '1');
    assert.equal(attribute({ attributes }, 'fax'), undefined);
  });
});
