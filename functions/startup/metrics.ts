import type { KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { condition, isReady } from '../../shared/rules/predicates.ts';
import { gauge } from '../../shared/telemetry/telemetry.ts';
import type { Inventory } from './unsettled.ts';

/** Metrics of the whole installation. Only startup can report them, because the other functions scale to zero. */
export function measureInventory(inventory: Inventory, forbidden: number, now: number): void {
  const notReady = Object.values(inventory)
    .flatMap((resources: ResourceOf[KindName][]) => resources)
    .filter((resource) => !isReady(resource));
  const groups = Map.groupBy(notReady, (resource) => `${resource.kind}/${condition(resource.status, 'Ready')?.reason ?? 'Unknown'}`);
  gauge(
    'lldap_operator.resources.not_ready',
    [...groups].map(([key, resources]) => {
      const [kind = '', reason = ''] = key.split('/');
      return { value: resources.length, attributes: { kind, reason } };
    }),
  );
  gauge('lldap_operator.memberships.forbidden', [{ value: forbidden }]);
  const since = notReady.filter((r) => r.status?.retry).map((r) => Date.parse(condition(r.status, 'Ready')?.lastTransitionTime ?? ''));
  const oldest = Math.min(now, ...since.filter((time) => !Number.isNaN(time)));
  gauge('lldap_operator.retry.oldest', [{ value: (now - oldest) / 1000 }]);
}

export function measureRun(run: { ok: boolean; reachable: boolean; now: number }): void {
  gauge('lldap_operator.sweep.success', [{ value: run.ok ? 1 : 0 }]);
  gauge('lldap_operator.lldap.reachable', [{ value: run.reachable ? 1 : 0 }]);
  if (run.ok) gauge('lldap_operator.sweep.last_success', [{ value: Math.round(run.now / 1000) }]);
}
