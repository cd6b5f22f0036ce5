import { createHash } from 'node:crypto';
import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import { createEvent } from '../../shared/engine/kube-events.ts';
import { BrokerError } from '../../shared/events/broker.ts';
import type { SweepMode } from '../../shared/events/parse.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { AttributeTarget, KindName, LldapMembership, ResourceOf } from '../../shared/kube/resources.ts';
import { LldapError } from '../../shared/lldap/api.ts';
import { targetOf } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { defineMarkAttributes } from '../../shared/lookup/mark-attribute.ts';
import { Failure } from '../../shared/rules/failure.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { notReadyReason } from '../../shared/rules/predicates.ts';
import type { Reason } from '../../shared/rules/reasons.ts';
import { isVirtual } from '../../shared/rules/resource-names.ts';
import type { Config } from '../../shared/service/config.ts';
import { keepVirtualGroups } from './built-in-groups.ts';
import { type Consent, createConsentCheck, needsLabels } from './consent.ts';
import { findDrifted } from './drift.ts';
import { measureInventory, measureRun } from './metrics.ts';
import { paceRuns } from './pace.ts';
import { findRival } from './rival.ts';
import { findRotated, keepPasswordKey } from './rotated-secrets.ts';
import { findLost, type Inventory, isStalled, sampleFairly } from './unsettled.ts';

/** The findings and actions of one run. */
export interface Summary {
  ok: boolean;
  modes: SweepMode[];
  /** One sentence per failed step, with the setting to check. */
  problems: string[];
  /** What an administrator should know although no step failed. */
  warnings: string[];
  marksDefined: number;
  virtualGroupsWritten: number;
  resources: number;
  /** Number of memberships that their group's owner does not admit. */
  forbidden: number;
  /** Number of resources under Observe that differ from lldap. */
  wouldChange: number;
  /** Whether a reconcile event was posted for every resource that was due. */
  asked: boolean;
  /** Number of reconcile events, by reason. */
  posted: { lost: number; stalled: number; rotated: number; drifted: number; full: number };
}

/** They add at most 20 s to a sweep at the default rate. */
const MAX_STALLED_PER_SWEEP = 1_000;

/** Does one step of a run. A failure becomes a problem in the summary, with the setting to check, and returns undefined. */
type Attempt = <T>(setting: string, work: () => Promise<T>) => Promise<T | undefined>;

interface Sweep {
  inventory: Inventory;
  policy: Policy;
  summary: Summary;
  attempt: Attempt;
}

export function createRuns(io: Io, config: Config): (mode: SweepMode, stopping?: AbortSignal) => Promise<Summary> {
  return paceRuns(io.clock, (modes) => startup(io, config, modes));
}

/**
 * 1. Checks that lldap answers over HTTP and LDAP, and accepts the credentials.
 * 2. Restores the definitions of the mark, the password key and the virtual groups, if lldap answers.
 * 3. Sweeps: posts reconcile events for resources whose own events were lost. This needs no lldap.
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
    forbidden: 0,
    wouldChange: 0,
    asked: false,
    posted: { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 },
  };
  const attempt: Attempt = async (setting, work) => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LldapError || error instanceof KubeError || error instanceof BrokerError || error instanceof Failure))
        throw error;
      summary.ok = false;
      summary.problems.push(`${error.message} (check ${error instanceof BrokerError ? 'BROKER_URL' : setting})`);
      return undefined;
    }
  };
  const { http, ldap } = await checkConnectivity(io, config, summary, attempt);
  const policy = await io.policy();
  const listed = await attempt('the rights of the ServiceAccount lldap-operator-startup', async () => ({
    LldapUser: await io.lookup.all('LldapUser'),
    LldapGroup: await io.lookup.all('LldapGroup'),
    LldapMembership: await io.lookup.all('LldapMembership'),
    LldapAttributeSchema: await io.lookup.all('LldapAttributeSchema'),
  }));
  const inventory = listed ?? { LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [] };
  const resources: ResourceOf[KindName][] = Object.values(inventory).flat();
  summary.resources = resources.length;
  summary.wouldChange = resources.filter((r) => notReadyReason(r) === 'WouldChange').length;
  if (http) {
    await attempt("the rights of the operator's account in lldap", async () => {
      // Nothing shows later that the definitions were lost, so restore them only if every resource can be reconciled afterwards.
      if (listed) await keepMarks(io, summary);
      summary.virtualGroupsWritten = await keepVirtualGroups(io, policy, inventory.LldapGroup);
    });
  }
  if (listed) await sweep(io, config, modes, { inventory, policy, summary, attempt });
  if (listed) measureInventory(inventory, summary.forbidden, io.clock.now());
  measureRun({ ok: summary.ok, reachable: http && ldap, now: io.clock.now() });
  const rival = findRival(Object.values(inventory).flat());
  if (rival) summary.warnings.push(rival);
  if (!summary.ok) await reportProblems(io, policy.operatorNamespace, { reason: 'StartupFailed', sentences: summary.problems });
  if (rival) await reportProblems(io, policy.operatorNamespace, { reason: 'RivalOperator', sentences: summary.warnings });
  return summary;
}

/** Its steps fail independently. Those that need only the lists come first. */
async function sweep(io: Io, config: Config, modes: ReadonlySet<SweepMode>, { inventory, policy, summary, attempt }: Sweep): Promise<void> {
  const postedUids = new Set<string>();
  const post = async (resources: ResourceOf[KindName][]): Promise<number> => {
    const due = resources.filter(({ metadata }) => !postedUids.has(metadata.uid));
    for (const resource of due) {
      await io.broker.reconcile(targetOf(resource));
      postedUids.add(resource.metadata.uid);
      await io.clock.sleep(1000 / config.sweepRate);
    }
    return due.length;
  };
  const { posted } = summary;
  const isEverythingDue = modes.has('full') || summary.marksDefined > 0;
  const consent = await readConsent(io, inventory, policy, attempt);
  summary.forbidden = inventory.LldapMembership.filter((m) => consent(m) === 'forbidden').length;
  const isOutdated = (r: ResourceOf[KindName]) => r.kind === 'LldapMembership' && consent(r) === 'outdated';
  const { lost = [], stalled = [] } = Object.groupBy(findLost(inventory, policy, io.clock.now(), consent), (r) =>
    isStalled(r) && !isOutdated(r) ? 'stalled' : 'lost',
  );
  // Before the events for users that wait for the key.
  const key = await attempt(`the Secret ${PASSWORD_KEY_SECRET}`, () => keepPasswordKey(io.kube, policy.instance));
  await attempt('BROKER_URL', async () => {
    posted.lost = await post(lost);
    // lldap removed the mark from every object together with its definition.
    if (isEverythingDue) posted.full = await post(allResources(inventory, policy.operatorNamespace));
    summary.asked = true;
  });
  if (isEverythingDue && !summary.asked)
    summary.problems.push('Reconcile events are missing for some resources: run startup again with mode full.');
  if (key)
    await attempt('the rights to read Secrets', async () => {
      posted.rotated = await post(await findRotated(io, policy, key, inventory.LldapUser));
    });
  if (modes.has('drift') && !modes.has('full'))
    await attempt('LLDAP_URL', async () => {
      posted.drifted = await post(await findDrifted(io, policy, inventory));
    });
  // Last, and only a sample: none of their events was lost, and one tenant may have thousands that never become Ready.
  await attempt('BROKER_URL', async () => {
    posted.stalled = await post(sampleFairly(stalled, MAX_STALLED_PER_SWEEP, io.random));
  });
}

/** Without the labels of the namespaces, only those of the groups that select namespaces by labels stay unjudged. */
async function readConsent(
  io: Io,
  inventory: Inventory,
  policy: Policy,
  attempt: Attempt,
): Promise<(membership: LldapMembership) => Consent> {
  const { LldapMembership: memberships, LldapGroup: groups } = inventory;
  const labels =
    policy.onlyNamespace === undefined && needsLabels(memberships, groups)
      ? await attempt('the right to list namespaces', () => io.kube.allNamespaceLabels())
      : undefined;
  return createConsentCheck(groups, labels, policy);
}

async function keepMarks(io: Io, summary: Summary): Promise<void> {
  const { created, altered } = await defineMarkAttributes(io.lldap);
  summary.marksDefined = created;
  for (const target of altered) {
    summary.ok = false;
    summary.problems.push(alteredMark(target));
  }
}

/** A malformed address is one problem, whose message names the setting. */
async function checkConnectivity(
  io: Io,
  { lldapProblem }: Config,
  summary: Summary,
  attempt: Attempt,
): Promise<{ http: boolean; ldap: boolean }> {
  if (lldapProblem) {
    summary.ok = false;
    summary.problems.push(lldapProblem);
    return { http: false, ldap: false };
  }
  const http = await attempt('LLDAP_URL and the Secret lldap-operator-credentials', () => io.lldap.check().then(() => true));
  const ldap = await attempt('LLDAP_LDAP_URL, LLDAP_BASE_DN and the Secret lldap-operator-credentials', () =>
    io.passwords.check().then(() => true),
  );
  return { http: http === true, ldap: ldap === true };
}

function alteredMark(target: AttributeTarget): string {
  const whose = `${target.toLowerCase()}s`;
  return `The attribute ${MARK_ATTRIBUTE} of ${whose} is not defined in lldap as the operator defines it: one text, not visible, not editable. Otherwise people may claim what is another's: delete the definition there, and startup makes it and all marks anew.`;
}

function allResources(inventory: Inventory, operatorNamespace: string): ResourceOf[KindName][] {
  const groups = inventory.LldapGroup.filter((g) => !isVirtual(g, operatorNamespace));
  return [...inventory.LldapAttributeSchema, ...inventory.LldapUser, ...groups, ...inventory.LldapMembership].filter(
    (r) => !r.spec.suspend,
  );
}

/** Logs the problems and creates at most one Kubernetes Event an hour for the same ones: the CronJob repeats the run every few minutes. */
async function reportProblems(
  io: Io,
  namespace: string,
  { reason, sentences }: { reason: Reason; sentences: readonly string[] },
): Promise<void> {
  const note = sentences.join('; ');
  io.log.error('startup found problems', { reason, problems: sentences });
  const hour = new Date(io.clock.now()).toISOString().slice(0, 13).replace('T', '-');
  const name = `lldap-operator-startup.${createHash('sha256').update(note).digest('hex').slice(0, 8)}.${hour}`;
  const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'lldap-operator', namespace } };
  await createEvent(io, about, { type: 'Warning', reason, note, name });
}
