import type { KindName } from '../../shared/kube/resources.ts';
import type { ColdStart } from './cold-start.ts';
import type { CpuByPart } from './meter.ts';
import { KINDS, type Phase, STEADY, type Throughput } from './throughput.ts';

/**
 * What `make bench` does not let pass. CPU is compared with something that was measured beside it on the same machine, since milliseconds
 * of two machines cannot be compared.
 */
export interface Bar {
  what: string;
  value: number;
  limit: number;
  unit: '×' | 'requests' | 'MiB';
  isMet: boolean;
  /** What a ratio comes from. */
  detail?: string;
}

/** Of CPU and peak memory, compared with express alone. */
const COLD = { 'settled event': { cpu: 1.25, rss: 1.4 }, 'full reconcile': { cpu: 1.6, rss: 1.4 } };
/** `cpu` is the function's, compared with the API server's for a raw resource of this run: one create and one write of the status. */
const NEW: Record<string, { cpu: number; requests: number }> = {
  LldapGroup: { cpu: 1, requests: 4 },
  LldapUser: { cpu: 1, requests: 5 },
  LldapMembership: { cpu: 1.5, requests: 5 },
};
const GROWTH = 1.3;
const RAW_GROUPS = 3;
const STARTUP_MIB = 150;

export function barsOf(coldStarts: ColdStart[], { phases, peaksMib, seesLldap }: Throughput): Bar[] {
  return [
    ...coldBars(coldStarts),
    ...KINDS.flatMap(([kind]) => newBars(kind, phases)),
    ...growthBars(phases),
    ...(seesLldap ? [rawBar(phases)] : []),
    bar(
      `startup with ${STEADY.toLocaleString('en')} resources: peak memory`,
      peaksMib['lldap-operator-startup'] ?? Number.NaN,
      STARTUP_MIB,
      'MiB',
    ),
  ];
}

function coldBars([express, ...others]: ColdStart[]): Bar[] {
  if (!express) throw new Error('express alone was not measured');
  return others.flatMap(({ name, cpuMs, rssMib }) => {
    if (name === 'express alone' || name === 'changed resource') return [];
    const cpu = ratio(`${name} from zero: CPU, against express alone`, cpuMs, express.cpuMs, COLD[name].cpu, 'ms');
    return [cpu, ratio(`${name} from zero: peak memory, against express alone`, rssMib, express.rssMib, COLD[name].rss, 'MiB')];
  });
}

function newBars(kind: KindName, phases: Phase[]): Bar[] {
  const { cpu = Number.NaN, requests = Number.NaN } = NEW[kind] ?? {};
  const [phase] = lastTwo(kind, phases);
  const name = `new ${kind}`;
  return [
    ratio(
      `${name}: CPU of functions, against the API server's for raw calls`,
      cpuPer(phase, 'functions'),
      rawMs(phases.filter(isRaw), 'apiserver'),
      cpu,
      'ms',
    ),
    bar(`${name}: API requests of functions`, requestsPer(phase), requests, 'requests'),
  ];
}

/**
 * Over all kinds, since the API server collects its garbage so seldom that one kind's step may have none of it. Each step is compared with
 * its own raw calls' client, whose work is always the same: on a machine that becomes busy, everything costs more.
 */
function growthBars(phases: Phase[]): Bar[] {
  const steps = KINDS.map(([kind]) => lastTwo(kind, phases));
  const sum = (index: 0 | 1, each: (phase: Phase) => number) => steps.reduce((total, step) => total + each(step[index]), 0);
  const client = (phase: Phase) => rawMs(rawBefore(phase, phases), 'double');
  return (['functions', 'apiserver'] as const).map((part) => {
    const own = (phase: Phase) => cpuPer(phase, part);
    const inRawCalls = (index: 0 | 1) => sum(index, own) / sum(index, client);
    return {
      ...bar(`one new resource of each kind: CPU of ${part}, against the step before`, inRawCalls(1) / inRawCalls(0), GROWTH, '×'),
      detail: `${of(sum(1, own), sum(0, own), 'ms')}, raw calls' client ${of(sum(1, client), sum(0, client), 'ms')}`,
    };
  });
}

/** The same parties on both sides: who talks to lldap, and lldap. */
function rawBar(phases: Phase[]): Bar {
  const [phase] = lastTwo('LldapGroup', phases);
  const raw = rawBefore(phase, phases).find(({ kind }) => kind === 'LldapGroup');
  if (!raw) throw new Error('no raw groups were measured');
  const sum = cpuPer(phase, 'functions') + cpuPer(phase, 'lldap');
  const rawSum = cpuPer(raw, 'double') + cpuPer(raw, 'lldap');
  return ratio("new LldapGroup: CPU of functions and lldap, against raw calls' client and lldap", sum, rawSum, RAW_GROUPS, 'ms');
}

export function cpuPer({ cost, resources }: Phase, part: keyof CpuByPart): number {
  return cost.cpuMs[part] / resources;
}

/** Of functions alone. */
export function requestsPer({ cost, resources }: Phase): number {
  const counts = Object.entries(cost.requests).filter(([key]) => !key.startsWith('others:'));
  return counts.reduce((sum, [, count]) => sum + count, 0) / resources;
}

/** CPU for one raw resource, on average over all kinds. */
function rawMs(raw: Phase[], part: keyof CpuByPart): number {
  return raw.reduce((sum, each) => sum + cpuPer(each, part), 0) / raw.length;
}

/** The raw calls that were measured right before the step of this phase. */
function rawBefore(phase: Phase, phases: Phase[]): Phase[] {
  const earlier = phases.slice(0, phases.indexOf(phase));
  return earlier.filter(isRaw).slice(-KINDS.length);
}

function isRaw({ by }: Phase): boolean {
  return by === 'raw calls';
}

function lastTwo(kind: KindName, phases: Phase[]): [before: Phase, last: Phase] {
  const [before, last] = phases.filter((phase) => phase.by === 'operator' && phase.kind === kind).slice(-2);
  if (!before || !last) throw new Error(`${kind} was not measured in two steps`);
  return [before, last];
}

function ratio(what: string, value: number, reference: number, limit: number, unit: 'ms' | 'MiB'): Bar {
  return { ...bar(what, value / reference, limit, '×'), detail: of(value, reference, unit) };
}

function of(value: number, reference: number, unit: 'ms' | 'MiB'): string {
  const digits = unit === 'ms' && reference < 100 ? 1 : 0;
  return `${value.toFixed(digits)} of ${reference.toFixed(digits)} ${unit}`;
}

/** A bar is judged by the value as it is printed. */
function bar(what: string, value: number, limit: number, unit: Bar['unit']): Bar {
  const rounded = Number(value.toFixed(unit === 'MiB' ? 0 : 2));
  return { what, value: rounded, limit, unit, isMet: rounded <= limit };
}
