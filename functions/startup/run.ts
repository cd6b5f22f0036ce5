import { createHash } from 'node:crypto';
import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import { createEvent } from '../../shared/engine/kube-events.ts';
import { BrokerError } from '../../shared/events/broker.ts';
import type { SweepMode } from '../../shared/events/parse.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { AttributeTarget, KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { LldapError } from '../../shared/lldap/api.ts';
import { targetOf } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { defineMarkAttributes } from '../../shared/lookup/mark-attribute.ts';
import { Failure } from '../../shared/rules/failure.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import type { Reason } from '../../shared/rules/reasons.ts';
import { isVirtual } from '../../shared/rules/resource-names.ts';
import type { Config } from '../../shared/service/config.ts';
import { keepVirtualGroups } from './built-in-groups.ts';
import { findDrifted } from './drift.ts';
import { measureInventory, measureRun } from './metrics.ts';
import { paceRuns } from './pace.ts';
import { findRival } from './rival.ts';
import { findRotated, keepPasswordKey } from './rotated-secrets.ts';
import { findLost, type Inventory, isStalled, sampleFairly } from './unsettled.ts';

/** What one run found and did. */
export interface Summary {
  ok: boolean;
  modes: SweepMode[];
  /** Each thing that failed, with the setting to look at. */
  problems: string[];
  /** What a person should know, although nothing failed. */
  warnings: string[];
  marksDefined: number;
  virtualGroupsWritten: number;
  resources: number;
  /** Whether every resource that was due was asked to reconcile. */
  asked: boolean;
  /** Reconcile events, by why. */
  posted: { lost: number; stalled: number; rotated: number; drifted: number; full: number };
}

/** Of stalled resources, so that 20 s at the default rate is the most that they add to a sweep. */
const MAX_STALLED_PER_SWEEP = 1_000;

/** Does one thing of a run; what fails is a problem of the summary, with the setting to look at, and answered with undefined. */
type Part = <T>(setting: string, work: () => Promise<T>) => Promise<T | undefined>;

interface Sweep {
  inventory: Inventory;
  policy: Policy;
  summary: Summary;
  part: Part;
}

export function createRuns(io: Io, config: Config): (mode: SweepMode, stopping?: AbortSignal) => Promise<Summary> {
  return paceRuns(io.clock, (modes) => startup(io, config, modes));
}

/**
 * 1. Is lldap there, by HTTP and LDAP, and do the credentials serve?
 * 2. The marks' definitions, the password key and the virtual groups, as far as lldap answers.
 * 3. The sweep, which needs no lldap: whatever its events should have settled and did not.
 */
async function startup(io: Io, config: Config, modes: ReadonlySet<SweepMode>): Promise<Summary> {
  const summary: Summary = {
    ok: true,
    modes: [...modes],
    problems: [],
    warnings: [],
    marksDefined: 0,
    virtualGroupsWritten: 0,
    resources: 0,
    asked: false,
    posted: { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 },
  };
  const part: Part = async (setting, work) => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LldapError || error instanceof KubeError || error instanceof BrokerError || error instanceof Failure))
        throw error;
      summary.ok = false;
      summary.problems.push(`${error.message} (look at ${error instanceof BrokerError ? 'BROKER_URL' : setting})`);
      return undefined;
    }
  };
  const { http, ldap } = await reach(io, config, summary, part);
  const policy = await io.policy();
  const rights = 'the rights of the ServiceAccount lldap-operator-startup';
  const listed = await part(rights, async () => ({
    LldapUser: await io.lookup.all('LldapUser'),
    LldapGroup: await io.lookup.all('LldapGroup'),
    LldapMembership: await io.lookup.all('LldapMembership'),
    LldapAttributeSchema: await io.lookup.all('LldapAttributeSchema'),
  }));
  const inventory = listed ?? { LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [] };
  summary.resources = Object.values(inventory).reduce((sum, list) => sum + list.length, 0);
  if (http) {
    await part('the rights of the operator’s account in lldap', async () => {
      // Once they are defined nothing tells that they were lost, so whoever defines them must be able to ask for everything.
      if (listed) await keepMarks(io, summary);
      summary.virtualGroupsWritten = await keepVirtualGroups(io, policy, inventory.LldapGroup);
    });
  }
  if (listed) await sweep(io, config, modes, { inventory, policy, summary, part });
  if (listed) measureInventory(inventory, io.clock.now());
  measureRun({ ok: summary.ok, reachable: http && ldap, now: io.clock.now() });
  const rival = findRival(Object.values(inventory).flat());
  if (rival) summary.warnings.push(rival);
  if (!summary.ok) await tell(io, policy.operatorNamespace, { reason: 'StartupFailed', sentences: summary.problems });
  if (rival) await tell(io, policy.operatorNamespace, { reason: 'RivalOperator', sentences: summary.warnings });
  return summary;
}

/** In parts that fail each for itself; what needs nothing but the lists comes first. */
async function sweep(io: Io, config: Config, modes: ReadonlySet<SweepMode>, { inventory, policy, summary, part }: Sweep): Promise<void> {
  const done = new Set<string>();
  const post = async (resources: ResourceOf[KindName][]): Promise<number> => {
    const due = resources.filter(({ metadata }) => !done.has(metadata.uid));
    for (const resource of due) {
      await io.broker.reconcile(targetOf(resource));
      done.add(resource.metadata.uid);
      await io.clock.sleep(1000 / config.sweepRate);
    }
    return due.length;
  };
  const { posted } = summary;
  const isEverythingDue = modes.has('full') || summary.marksDefined > 0;
  const { lost = [], stalled = [] } = Object.groupBy(findLost(inventory, policy.operatorNamespace, io.clock.now()), (r) =>
    isStalled(r) ? 'stalled' : 'lost',
  );
  // Before users are asked for that wait for it.
  const key = await part(`the Secret ${PASSWORD_KEY_SECRET}`, () => keepPasswordKey(io.kube, policy.instance));
  await part('BROKER_URL', async () => {
    posted.lost = await post(lost);
    // Where the mark was undefined, no object has one any more.
    if (isEverythingDue) posted.full = await post(everything(inventory, policy.operatorNamespace));
    summary.asked = true;
  });
  if (isEverythingDue && !summary.asked)
    summary.problems.push('Not every resource was asked to look at lldap again: run startup once more with mode full.');
  if (key)
    await part('the rights to read Secrets', async () => {
      posted.rotated = await post(await findRotated(io, policy, key, inventory.LldapUser));
    });
  if (modes.has('drift') && !modes.has('full'))
    await part('LLDAP_URL', async () => {
      posted.drifted = await post(await findDrifted(io, policy, inventory));
    });
  // Last, and not all at once: nothing of these was lost, and anybody may have made thousands that can never be Ready.
  await part('BROKER_URL', async () => {
    posted.stalled = await post(sampleFairly(stalled, MAX_STALLED_PER_SWEEP, io.random));
  });
}

async function keepMarks(io: Io, summary: Summary): Promise<void> {
  const { created, altered } = await defineMarkAttributes(io.lldap);
  summary.marksDefined = created;
  for (const target of altered) {
    summary.ok = false;
    summary.problems.push(alteredMark(target));
  }
}

/** Whether lldap can be reached; a malformed address is one problem, which names its setting itself. */
async function reach(io: Io, { lldapProblem }: Config, summary: Summary, part: Part): Promise<{ http: boolean; ldap: boolean }> {
  if (lldapProblem) {
    summary.ok = false;
    summary.problems.push(lldapProblem);
    return { http: false, ldap: false };
  }
  const http = await part('LLDAP_URL and the Secret lldap-operator-credentials', () => io.lldap.check().then(() => true));
  const ldap = await part('LLDAP_LDAP_URL and LLDAP_BASE_DN', () => io.passwords.check().then(() => true));
  return { http: http === true, ldap: ldap === true };
}

function alteredMark(target: AttributeTarget): string {
  const whose = `${target.toLowerCase()}s`;
  return `The attribute ${MARK_ATTRIBUTE} of ${whose} is not defined in lldap as the operator defines it: one text, not visible, not editable. Otherwise people may claim what is another's: delete the definition there, and startup makes it and all marks anew.`;
}

function everything(inventory: Inventory, operatorNamespace: string): ResourceOf[KindName][] {
  const groups = inventory.LldapGroup.filter((g) => !isVirtual(g, operatorNamespace));
  return [...inventory.LldapAttributeSchema, ...inventory.LldapUser, ...groups, ...inventory.LldapMembership].filter(
    (r) => !r.spec.suspend,
  );
}

/** At most one Kubernetes Event an hour for the same problems: the CronJob repeats the run every few minutes. */
async function tell(io: Io, namespace: string, { reason, sentences }: { reason: Reason; sentences: readonly string[] }): Promise<void> {
  const note = sentences.join('; ');
  io.log.error('startup found problems', { reason, problems: sentences });
  const hour = new Date(io.clock.now()).toISOString().slice(0, 13).replace('T', '-');
  const name = `lldap-operator-startup.${createHash('sha256').update(note).digest('hex').slice(0, 8)}.${hour}`;
  const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'lldap-operator', namespace } };
  await createEvent(io, about, { type: 'Warning', reason, note, name });
}
