import assert from 'node:assert/strict';
import { INSTANCE_LABEL } from '../../../shared/constants.ts';
import { readManifests } from '../../local/knative/manifests.ts';
import { renderManifests } from '../../local/knative/render.ts';
import { type Typed, typedManifests } from '../../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../../local/kube/shared.ts';
import { changes } from './changes.ts';

const NAME = 'lldap-operator';
const CLUSTER_WIDE = ['attribute-schema', 'group', 'membership', 'resources-source', 'secrets-source', 'startup', 'user'];

describe('The overlay', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let rendered: string;
  let base: Typed;

  before(async () => {
    rendered = await renderManifests();
    base = typedManifests(rendered);
  });

  it('for all namespaces equals the base', async () => {
    assert.deepEqual(changes(rendered, await renderManifests('overlays/all-namespaces')), []);
  });

  describe('for a single namespace', () => {
    let single: Typed;
    let changed: string[];

    before(async () => {
      const text = await renderManifests('overlays/single-namespace');
      single = typedManifests(text);
      changed = changes(rendered, text);
      readManifests(text);
    });

    it('turns cluster roles into roles, and the sources and functions to their own namespace; nothing else', () => {
      const expected = [
        `- Namespace ${NAME}`,
        ...CLUSTER_WIDE.flatMap((name) => ['ClusterRole', 'ClusterRoleBinding'].map((kind) => `- ${kind} ${NAME}-${name}`)),
        ...CLUSTER_WIDE.flatMap((name) => ['Role', 'RoleBinding'].map((kind) => `+ ${kind} ${NAME}-${name}`)),
        ...['resources', 'secrets'].map((name) => `ApiServerSource ${NAME}-${name} .spec.namespaceSelector: gone`),
        `ConfigMap ${NAME} .data.NAMESPACES: own`,
      ];
      assert.deepEqual(changed, expected.sort());
    });

    it('has no object outside its namespace', () => {
      for (const { kind, metadata } of single.all) assert.equal(metadata.namespace, NAME, `${kind} ${metadata.name}`);
    });

    it('gives each account the same rights, only there, and none to read namespaces', () => {
      const inNamespaces = (all: Typed['roles'][number]['rules']) => all.filter(({ resources }) => !resources.includes('namespaces'));
      const rules = ({ roles }: Typed) => new Map(roles.map((role) => [role.metadata.name, inNamespaces(role.rules)]));
      for (const role of single.roles) assert.deepEqual(role.rules, inNamespaces(role.rules));
      assert.deepEqual(rules(single), rules(base));
      assert.equal(single.bindings.length, base.bindings.length);
      for (const { roleRef, subjects } of single.bindings) {
        assert.ok(
          single.roles.some(({ kind, metadata }) => kind === roleRef.kind && metadata.name === roleRef.name),
          roleRef.name,
        );
        assert.deepEqual([roleRef.kind, subjects.map(({ namespace }) => namespace)], ['Role', [NAME]]);
      }
    });
  });

  describe('for a second instance', () => {
    const NAMESPACE = 'lldap-second';
    let second: Typed;

    before(async () => {
      const text = await renderManifests('overlays/second-instance');
      second = typedManifests(text);
      readManifests(text);
    });

    it('shares no object with the first installation', () => {
      const idOf = ({ apiVersion, kind, metadata }: Typed['all'][number]) => `${apiVersion} ${kind} ${metadata.namespace} ${metadata.name}`;
      const first = new Set(base.all.map(idOf));
      assert.deepEqual(
        second.all.map(idOf).filter((id) => first.has(id)),
        [],
      );
      assert.equal(second.all.length, base.all.length);
    });

    it('puts the instance into the names of objects without a namespace, and into every label', () => {
      for (const { kind, metadata } of second.all) {
        if (kind.startsWith('ClusterRole')) assert.match(metadata.name, /^lldap-operator-[a-z-]+-second$/);
        assert.equal(metadata.labels?.['app.kubernetes.io/instance'], 'second', `${kind} ${metadata.name}`);
      }
    });

    it('binds its own accounts to its own roles', () => {
      const roles = second.roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      assert.equal(second.bindings.length, base.bindings.length);
      for (const { roleRef, subjects } of second.bindings) {
        assert.ok(roles.includes(`${roleRef.kind} ${roleRef.name}`), roleRef.name);
        assert.deepEqual(
          subjects.map(({ namespace }) => namespace),
          [NAMESPACE],
        );
      }
    });

    it('watches the instance that it serves', () => {
      assert.equal(second.config.LLDAP_INSTANCE, 'second');
      const selectors = second.sources.flatMap(({ spec }) => spec?.resources?.map(({ selector }) => selector));
      assert.deepEqual(selectors, Array(5).fill({ matchLabels: { [INSTANCE_LABEL]: 'second' } }));
    });

    it('posts to its own Broker and calls its own startup', () => {
      assert.equal(second.config.BROKER_URL, `http://broker-ingress.knative-eventing.svc.cluster.local/${NAMESPACE}/lldap-operator`);
      const pods = [
        ...second.jobs.map(({ spec }) => spec.template.spec),
        ...second.cronJobs.map(({ spec }) => spec.jobTemplate.spec.template.spec),
      ];
      for (const { containers } of pods)
        assert.equal(containers[0]?.env?.[0]?.value, `http://lldap-operator-startup.${NAMESPACE}.svc.cluster.local`);
      assert.equal(pods.length, 3);
    });
  });
});
