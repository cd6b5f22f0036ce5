import assert from 'node:assert/strict';
import type { AttributeTarget, LldapAttributeSchema } from '../../../shared/kube/resources.ts';
import type { AttributeDefinition } from '../../../shared/lldap/api.ts';
import { findDefinitions } from '../../../shared/lookup/attribute-definitions.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import type { Failure } from '../../../shared/rules/failure.ts';
import { condition, definition, group, policy, READY, schema, told, user } from '../support/examples.ts';

/** What is found for attributes of these names, and whether lldap was asked for it. */
async function find(
  names: string[],
  schemas: LldapAttributeSchema[],
  defined: AttributeDefinition[] = [],
  target: AttributeTarget = 'User',
) {
  const read: string[] = [];
  const io = {
    lookup: {
      all: async () => {
        read.push('resources');
        return schemas;
      },
      schema: async () => {
        read.push('lldap');
        return { User: target === 'User' ? defined : [], Group: target === 'Group' ? defined : [] };
      },
    },
  } as unknown as Io;
  const attributes = names.map((name) => ({ name, value: ['1'] }));
  const resource = target === 'User' ? user({ spec: { attributes } }) : group({ spec: { attributes } });
  const found = await findDefinitions({ io, policy: policy(), resource }).catch((error: Failure) => error);
  return { found: found instanceof Error ? told(found) : Object.fromEntries(found), read };
}

const ready = (example: Parameters<typeof schema>[0] = {}) => schema({ ...example, status: { conditions: [READY] } });
const failing = (reason: string, ...more: ReturnType<typeof condition>[]) => ({
  conditions: [condition('Ready', 'False', reason), ...more],
});

describe('shared/lookup/attribute-definitions', () => {
  it('nothing is read for who names no attributes', async () => {
    assert.deepEqual(await find([], []), { found: {}, read: [] });
  });

  it('lldap’s own definition counts, whatever a resource that claims to be Ready says, in one read for all attributes', async () => {
    const avatar = definition({ name: 'avatar', type: 'JpegPhoto' });
    const size = definition({ type: 'String', isList: true });
    assert.deepEqual(await find(['Avatar', 'SHOE-size'], [ready({ spec: { attributeName: 'Shoe-Size' } })], [avatar, size]), {
      found: { avatar, 'shoe-size': size },
      read: ['resources', 'lldap'],
    });
  });

  const waiting = [
    'NotReady',
    'DependencyNotReady',
    'The LldapAttributeSchema team/shoe-size, which declares the attribute Shoe-Size, is not Ready. See its status for the reason.',
  ];
  const deleting = (by: string) => [
    'NotReady',
    'DependencyNotReady',
    `The LldapAttributeSchema ${by}/shoe-size is being deleted, and the attribute Shoe-Size with it. Remove Shoe-Size from spec.attributes, or create another LldapAttributeSchema for it.`,
  ];
  const undefinedFor = (who: string) => [
    'NotReady',
    'DependencyNotReady',
    `lldap has no attribute Shoe-Size for ${who}. Create an LldapAttributeSchema for it, or correct spec.attributes.`,
  ];
  const inLldap = { 'shoe-size': definition() };
  const going = (example: Parameters<typeof schema>[0] = {}) =>
    schema({ ...example, metadata: { deletionTimestamp: '2026-03-01T11:00:00Z', ...example.metadata } });
  const cases: Record<string, [LldapAttributeSchema[], AttributeDefinition[], found: unknown, AttributeTarget?]> = {
    'is waited for while the resource that declares it is new': [[schema()], [], waiting],
    'is waited for while the resource that declares it fails': [[schema({ status: failing('LldapUnavailable') })], [], waiting],
    'is lldap’s own while the resource that declares it never becomes Ready': [
      [schema({ status: failing('Suspended') })],
      [definition()],
      inLldap,
    ],
    'is waited for while the resource that made it is being deleted': [
      [going({ status: { created: true } })],
      [definition()],
      deleting('team'),
    ],
    'is lldap’s own while the resource that made it is being deleted and shall keep it': [
      [going({ spec: { deletionPolicy: 'Retain' }, status: { created: true } })],
      [definition()],
      inLldap,
    ],
    'is waited for while a privileged namespace deletes it': [
      [going({ spec: { deletionPolicy: 'Delete' }, metadata: { namespace: 'admins' } })],
      [definition()],
      deleting('admins'),
    ],
    'is lldap’s own while one is deleted that may not delete it': [
      [going({ spec: { deletionPolicy: 'Delete' } })],
      [definition()],
      inLldap,
    ],
    'is lldap’s own while another controller’s finalizer alone holds the one that is deleted': [
      [going({ status: { created: true }, metadata: { finalizers: ['example.com/hold'] } })],
      [definition()],
      inLldap,
    ],
    'is lldap’s own while one is deleted that says it made it, and declares another': [
      [going({ spec: { isList: true }, status: { created: true } })],
      [definition()],
      inLldap,
    ],
    'is lldap’s own while one is deleted that says it made what is built into lldap': [
      [going({ status: { created: true } })],
      [definition({ isHardcoded: true })],
      { 'shoe-size': definition({ isHardcoded: true }) },
    ],
    'is lldap’s own though one is deleted, as soon as another resource is Ready': [
      [going({ metadata: { name: 'other' }, status: { created: true } }), ready()],
      [definition()],
      inLldap,
    ],
    'that a Ready resource has lost is left to the write, which asks it to define it again': [[ready()], [], {}],
    'is lldap’s own where the resource that declares it is refused for good': [
      [schema({ status: failing('SchemaMismatch', condition('Stalled', 'True', 'SchemaMismatch')) })],
      [definition({ type: 'String' })],
      { 'shoe-size': definition({ type: 'String' }) },
    ],
    'is missing where nobody declares it and lldap has none': [[], [], undefinedFor('users')],
    'is missing for groups, too': [[], [], undefinedFor('groups'), 'Group'],
    'is not the one of the other target': [[ready()], [], undefinedFor('groups'), 'Group'],
    'is the one of its own target': [[schema()], [definition()], inLldap, 'Group'],
  };
  for (const [name, [schemas, defined, found, target]] of Object.entries(cases)) {
    it(`an attribute ${name}`, async () => assert.deepEqual((await find(['Shoe-Size'], schemas, defined, target)).found, found));
  }
});
