import fc from 'fast-check';
import { BUILT_IN_GROUPS, MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { AllowedNamespaces, KindName } from '../../shared/kube/resources.ts';
import { FUNCTIONS } from './process.ts';
import type { Place, Schedule, Step } from './schedule.ts';
import { FAULTS } from './scheduler.ts';

/** Random schedules. Few names, so that they clash; few steps, so that ten thousand schedules take minutes. */

type Arb<T> = fc.Arbitrary<T>;
const pick = fc.constantFrom;
const often = <T>(weight: number, arbitrary: Arb<T>): fc.WeightedArbitrary<T> => ({ weight, arbitrary });
const optional = <T>(arb: Arb<T>, weight = 1): Arb<T | undefined> => fc.oneof(often(3, fc.constant(undefined)), often(weight, arb));
/** 0, the plainest, is what shrinking ends at. */
const seed = fc.nat({ max: 1_000_000 });

const namespace = fc.oneof(
  often(5, fc.constant('a')),
  often(2, fc.constant('b')),
  often(2, fc.constant('adm')),
  often(1, fc.constant('op')),
);
const place: Arb<Place> = fc.tuple(namespace, pick('r1', 'r2')).map(([ns, name]): Place => `${ns}/${name}`);
const userName = fc.oneof(often(8, pick('alice', 'bob')), often(1, fc.constant('Alice')), often(1, fc.constant('admin')));
const groupName = fc.oneof(often(8, pick('team', 'ops')), often(1, fc.constant('Team')), often(1, pick(...BUILT_IN_GROUPS)));
const email = pick('e1@x', 'e2@x', 'e3@x', 'E1@x');
const text = pick('A', 'B', '');
const password = fc.oneof(often(6, pick('password-1', 'password-2', 'password-3')), often(1, fc.constant('short')));

const common = {
  deletionPolicy: optional(pick('Delete' as const, 'Retain' as const)),
  managementPolicy: fc.oneof(often(12, fc.constant(undefined)), often(1, fc.constant('Observe' as const))),
  suspend: fc.oneof(often(9, fc.constant(undefined)), often(1, fc.constant(true))),
};

/** Without what is left out, as the API server stores it. */
function spec<T extends object>(arb: Arb<T>): Arb<T> {
  return arb.map((it) => Object.fromEntries(Object.entries(it).filter(([, value]) => value !== undefined)) as T);
}

const userAttributes = fc.uniqueArray(
  fc.oneof(
    often(4, fc.record({ name: pick('shoe', 'Shoe'), value: pick(['42'], ['043'], ['']) })),
    often(3, fc.record({ name: fc.constant('tags'), value: pick(['a', 'b'], ['a'], []) })),
    often(1, fc.record({ name: fc.constant('shoe'), value: pick(['x'], ['1', '2']) })),
  ),
  { selector: ({ name }) => name.toLowerCase(), maxLength: 2 },
);
const groupAttributes = fc.array(fc.record({ name: fc.constant('color'), value: pick(['red'], ['blue'], ['']) }), { maxLength: 1 });

const userSpec = spec(
  fc
    .record({
      username: userName,
      email,
      displayName: optional(text, 2),
      firstName: optional(text),
      attributes: optional(userAttributes),
      passwordPolicy: fc.oneof(
        often(3, fc.constant(undefined)),
        often(1, fc.constant('InitialOnly' as const)),
        often(2, fc.constant('Ignore' as const)),
      ),
      secret: pick('s1', 's1', 's1', 's1', 's2'),
      ...common,
    })
    .map(({ secret, ...rest }) => (rest.passwordPolicy === 'Ignore' ? rest : { ...rest, passwordSecretRef: { name: secret, key: 'k' } })),
);
const ofNamespaces = (selector: Record<string, string>) => ({ from: 'Selector' as const, selector: { matchLabels: selector } });
const allowedNamespaces: Arb<AllowedNamespaces> = fc.oneof(
  often(4, fc.constant({ from: 'All' as const })),
  often(2, fc.constant({ from: 'Same' as const })),
  often(2, pick(ofNamespaces({ team: 'blue' }), ofNamespaces({ 'kubernetes.io/metadata.name': 'b' }))),
);
const groupSpec = spec(
  fc.record({
    displayName: groupName,
    attributes: optional(groupAttributes),
    allowedMemberships: optional(
      allowedNamespaces.map((namespaces) => ({ namespaces })),
      3,
    ),
    ...common,
  }),
);
const membershipSpec = spec(fc.record({ userName, groupName, ...common }));
const schemaSpec = spec(
  fc
    .tuple(
      fc.oneof(
        often(3, fc.constant({ attributeName: 'shoe', attributeType: 'Integer' as const, target: 'User' as const })),
        often(3, fc.constant({ attributeName: 'tags', attributeType: 'String' as const, target: 'User' as const, isList: true })),
        often(3, fc.constant({ attributeName: 'color', attributeType: 'String' as const, target: 'Group' as const })),
        often(1, fc.constant({ attributeName: 'Shoe', attributeType: 'String' as const, target: 'User' as const })),
      ),
      fc.record(common),
    )
    .map(([definition, rest]) => ({ ...definition, ...rest })),
);

const apply: Arb<Step> = fc.oneof(
  often(5, fc.record({ do: fc.constant('apply' as const), kind: fc.constant('LldapUser' as const), at: place, spec: userSpec })),
  often(4, fc.record({ do: fc.constant('apply' as const), kind: fc.constant('LldapGroup' as const), at: place, spec: groupSpec })),
  often(
    4,
    fc.record({ do: fc.constant('apply' as const), kind: fc.constant('LldapMembership' as const), at: place, spec: membershipSpec }),
  ),
  often(
    2,
    fc.record({ do: fc.constant('apply' as const), kind: fc.constant('LldapAttributeSchema' as const), at: place, spec: schemaSpec }),
  ),
) as Arb<Step>;

const kind: Arb<KindName> = fc.oneof(
  often(4, fc.constant('LldapUser' as const)),
  often(4, fc.constant('LldapGroup' as const)),
  often(4, fc.constant('LldapMembership' as const)),
  often(1, fc.constant('LldapAttributeSchema' as const)),
);
/** s1 carries the label, so its changes are told; s2 doesn't. */
const secretStep: Arb<Step> = fc
  .record({
    namespace,
    name: pick('s1', 's1', 's1', 's1', 's2'),
    data: fc.oneof(
      often<Record<string, string> | null>(
        8,
        password.map((k) => ({ k })),
      ),
      often(1, fc.constant(null)),
      often(1, fc.constant({ other: 'password-1' })),
    ),
  })
  .map(({ namespace: ns, name, data }): Step => ({ do: 'secret', at: `${ns}/${name}`, data, labelled: name === 's1' }));

const asking: Arb<Step> = fc.oneof(
  often(10, apply),
  often(5, secretStep),
  often(5, fc.record({ do: fc.constant('delete' as const), kind, at: place })),
  often(1, fc.record({ do: fc.constant('request' as const), kind, at: place, token: pick('t1', 't2') })),
  often(1, fc.record({ do: fc.constant('label' as const), namespace: pick('a', 'b'), team: pick('blue', null) })),
);

const passing: Arb<Step> = fc.oneof(
  often(5, fc.record({ do: fc.constant('run' as const), actions: fc.integer({ min: 1, max: 10 }), seed })),
  often(4, fc.record({ do: fc.constant('run' as const), actions: fc.integer({ min: 5, max: 40 }), seed })),
  often(3, fc.record({ do: fc.constant('wait' as const), seconds: pick(1, 5, 20, 70, 400), seed })),
);

const soon = { after: fc.nat({ max: 15 }), pick: fc.nat({ max: 5 }), seed };
const failing: Arb<Step> = fc.oneof(
  often(
    8,
    fc.record({
      do: fc.constant('fail' as const),
      service: pick('kube', 'lldap', 'ldap', 'broker'),
      fault: pick(...FAULTS),
      calls: fc.integer({ min: 1, max: 6 }),
    }),
  ),
  often(8, fc.record({ do: fc.constant('crash' as const), ...soon })),
  often(3, fc.record({ do: fc.constant('freeze' as const), ...soon })),
  often(1, fc.record({ do: fc.constant('thaw' as const), pick: fc.nat({ max: 5 }) })),
  often(1, fc.record({ do: fc.constant('rollout' as const), name: pick(...FUNCTIONS) })),
  often(1, fc.record({ do: fc.constant('brokerDies' as const) })),
  often(2, fc.record({ do: fc.constant('sourceDown' as const), changes: fc.integer({ min: 1, max: 8 }) })),
  often(6, fc.record({ do: fc.constant('event' as const), what: pick('drop', 'repeat', 'delay'), pick: fc.nat({ max: 20 }) })),
  often(2, fc.record({ do: fc.constant('giveUp' as const), ...soon })),
  often(2, fc.record({ do: fc.constant('stall' as const), seconds: pick(3, 12, 40), seed })),
  often(1, fc.record({ do: fc.constant('logout' as const) })),
  often(1, fc.record({ do: fc.constant('rotate' as const), what: pick('password', 'file', 'both') })),
  often(1, fc.record({ do: fc.constant('demote' as const) })),
  often(2, fc.record({ do: fc.constant('touch' as const), kind, at: place, what: pick('annotation', 'condition', 'finalizer') })),
) as Arb<Step>;

const late: Arb<Step> = fc.record({ do: fc.constant('crashLate' as const), ...soon });

const target = fc.tuple(kind, place).map(([k, at]) => ({ kind: k, namespace: at.split('/')[0] ?? '', name: at.split('/')[1] ?? '' }));
const notBefore = pick('2026-03-01T12:00:00.000Z', '2026-03-01T12:00:05.000Z', '2026-03-01T13:00:00.000Z', '2099-01-01T00:00:00.000Z');
const telling: Arb<Step> = fc.oneof(
  fc.record({
    do: fc.constant('forge' as const),
    event: fc.oneof(
      fc.record({ what: fc.constant('requeue' as const), target, notBefore, time: notBefore, redelivered: fc.constant(0) }),
      fc.record({ what: fc.constant('reconcile' as const), target, redelivered: fc.constant(0) }),
      fc.record({ what: fc.constant('reconcile' as const), target, notBefore, redelivered: fc.constant(0) }),
      fc.record({
        what: fc.constant('resource' as const),
        change: pick('add', 'update', 'delete'),
        target,
        object: fc.constant({ metadata: { uid: 'x', resourceVersion: '1' } }),
      }),
    ),
  }) as Arb<Step>,
  fc.record({ do: fc.constant('startup' as const), mode: pick('sweep', 'full', 'drift') }) as Arb<Step>,
);

const markValue = fc.oneof(
  often(2, fc.constant(null)),
  often(1, fc.constant('nonsense')),
  often(1, fc.constant('v1;other;a/r1;created')),
  often(
    2,
    fc.tuple(place, pick('created', 'adopted')).map(([at, origin]) => `v1;main;${at};${origin}`),
  ),
  often(
    1,
    fc
      .tuple(place, pick('uid-1', 'uid-2', 'uid-3'), pick('', ';another-object'))
      .map(([at, uid, of]) => `v2;main;${at};created;${uid}${of}`),
  ),
);
const handUser = pick('alice', 'bob');
const handGroup = pick('team', 'ops');
const touching: Arb<Step> = fc.oneof(
  often(3, fc.record({ do: fc.constant('newUser' as const), id: handUser, email })),
  often(3, fc.record({ do: fc.constant('newGroup' as const), displayName: handGroup })),
  often(3, fc.record({ do: fc.constant('editUser' as const), id: handUser, email }) as Arb<Step>),
  often(2, fc.record({ do: fc.constant('editUser' as const), id: handUser, displayName: text, shoe: pick('41', '42') }) as Arb<Step>),
  often(2, fc.record({ do: fc.constant('renameGroup' as const), from: handGroup, to: handGroup })),
  often(2, fc.record({ do: fc.constant('removeUser' as const), id: handUser })),
  often(2, fc.record({ do: fc.constant('removeGroup' as const), displayName: handGroup })),
  often(
    4,
    fc.record({
      do: pick('join' as const, 'leave' as const),
      user: handUser,
      group: fc.oneof(often(4, handGroup), often(1, pick(...BUILT_IN_GROUPS))),
    }),
  ),
  often(2, fc.record({ do: fc.constant('mark' as const), of: fc.constant('user' as const), name: handUser, value: markValue })),
  often(2, fc.record({ do: fc.constant('mark' as const), of: fc.constant('group' as const), name: handGroup, value: markValue })),
  often(2, fc.record({ do: fc.constant('password' as const), id: handUser, password })),
  often(
    1,
    fc.record({
      do: pick('define' as const, 'undefine' as const),
      target: pick('User' as const, 'Group' as const),
      name: pick('shoe', 'color'),
    }),
  ),
  often(
    1,
    fc.record({ do: fc.constant('undefine' as const), target: pick('User' as const, 'Group' as const), name: fc.constant(MARK_ATTRIBUTE) }),
  ),
) as Arb<Step>;

const restoring: Arb<Step> = fc.oneof(
  often(1, fc.record({ do: fc.constant('backup' as const), of: pick('kube', 'lldap') })),
  often(1, fc.record({ do: fc.constant('restore' as const), of: pick('kube', 'lldap'), bare: fc.boolean() })),
) as Arb<Step>;

/** How much of what a schedule holds. */
export interface Mix {
  processes: number;
  minutesApart: number;
  weights: Partial<Record<keyof typeof STEPS, number>>;
  /** What has been done before, one of these. */
  before?: readonly (readonly Step[])[];
}

const STEPS = { passing, asking, failing, late, telling, touching, restoring };

export function scheduleOf({ processes, minutesApart, weights, before = [[]] }: Mix): Arb<Schedule> {
  const steps = (Object.keys(weights) as (keyof typeof STEPS)[]).map((name) => often(weights[name] ?? 0, STEPS[name]));
  const minutes = fc.integer({ min: -minutesApart, max: minutesApart });
  return fc.record({
    processes: fc.integer({ min: 1, max: processes }),
    skews: fc.array(minutes, { maxLength: processes }),
    adoption: fc.oneof(often(4, fc.constant('privileged' as const)), often(1, fc.constant('all' as const))),
    maxDelayedRetries: fc.oneof(often(9, fc.constant(1000)), often(1, fc.constant(1))),
    installed: fc.oneof(often(5, fc.constant(true)), often(1, fc.constant(false))),
    phase: fc.nat({ max: 299 }),
    calmSeed: seed,
    steps: fc
      .tuple(fc.constantFrom(...before), fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 40, size: 'max' }))
      .map(([first, then]) => [...first, ...then]),
  });
}
