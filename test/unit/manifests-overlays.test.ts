import assert from 'node:assert/strict';
import { INSTANCE_LABEL } from '../../shared/names.ts';
import { readManifests } from '../local/knative/manifests.ts';
import { renderManifests } from '../local/knative/render.ts';
import { type Typed, typedManifests } from '../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';

const NAMESPACE = 'lldap-second';

describe('The overlay for a second instance', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let base: Typed;
  let second: Typed;

  before(async () => {
    base = typedManifests(await renderManifests());
    const rendered = await renderManifests('overlays/second-instance');
    second = typedManifests(rendered);
    readManifests(rendered);
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
