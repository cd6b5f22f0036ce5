import { type Bar, cpuPer, requestsPer } from './bars.ts';
import { type ColdStart, ROUNDS } from './cold-start.ts';
import { type Counts, PARTS } from './meter.ts';
import type { Phase, Throughput } from './throughput.ts';

/** What people read. */
export function report(coldStarts: ColdStart[], throughput: Throughput, bars: Bar[]): string {
  return [
    coldTable(coldStarts),
    phaseTable(throughput),
    countLists(throughput.phases),
    `Peak memory of functions: ${Object.entries(throughput.peaksMib)
      .map(([service, mib]) => `${service.replace('lldap-operator-', '')} ${mib.toFixed(0)} MiB`)
      .join(', ')}`,
    barTable(bars),
  ].join('\n\n');
}

function coldTable(coldStarts: ColdStart[]): string {
  const rows = coldStarts.map(({ name, cpuMs, rssMib, wallMs }) => [name, ...[cpuMs, rssMib, wallMs].map((value) => value.toFixed(0))]);
  return `From the start to the answer of the first event, the least of ${ROUNDS}\n${table([['', 'CPU ms', 'peak MiB', 'wall ms'], ...rows])}`;
}

function phaseTable({ phases, seesLldap }: Throughput): string {
  const head = ['', 'beside', 'new', 'wall', ...PARTS, 'requests', 'kB'];
  const rows = withoutSweep(phases).map((phase) => {
    const { by, kind, existing, resources, cost } = phase;
    const cpu = PARTS.map((part) => (part === 'lldap' && !seesLldap ? '?' : cpuPer(phase, part).toFixed(1)));
    const kb = (total(cost.responseBytes) / resources / 1024).toFixed(1);
    const name = by === 'operator' ? `${kind}` : `${kind}, ${by}`;
    return [
      name,
      thousands(existing),
      thousands(resources),
      (cost.wallMs / resources).toFixed(1),
      ...cpu,
      requestsPer(phase).toFixed(2),
      kb,
    ];
  });
  return `Per new resource: wall time in ms, CPU in ms by process ("double" is the local Knative and this bench), API requests of functions,
and kB that anybody read from the API server
${table([head, ...rows])}`;
}

function withoutSweep(phases: Phase[]): Phase[] {
  return phases.filter(({ by }) => by !== 'sweep');
}

/** What was counted in the sweep and in the last step. */
function countLists(phases: Phase[]): string {
  const last = phases.slice(phases.findIndex(({ by }) => by === 'sweep')).filter(({ by }) => by !== 'raw calls');
  const text = last.map((phase) => {
    const { by, kind, existing, resources, cost } = phase;
    const per = (counts: Counts, unit = 1) =>
      Object.entries(counts)
        .map(([key, count]) => [key, by === 'sweep' ? (count / unit).toFixed(0) : (count / unit / resources).toFixed(2)] as const)
        .filter(([key, count]) => Number(count) > 0 && !key.startsWith('others:'))
        .map(([key, count]) => `${key} ${count}`)
        .sort()
        .join(', ');
    const cpu = PARTS.map((part) => `${part} ${(cost.cpuMs[part] / 1000).toFixed(1)}`).join(', ');
    const title =
      by === 'sweep'
        ? `Sweep over ${thousands(existing)}: ${(cost.wallMs / 1000).toFixed(1)} s; CPU in s: ${cpu}`
        : `Per new ${kind} beside ${thousands(existing)}`;
    return `${title}\n  API requests: ${per(cost.requests)}\n  kB read: ${per(cost.responseBytes, 1024)}\n  lldap calls: ${per(cost.lldapCalls)}`;
  });
  return text.join('\n');
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, value) => sum + value, 0);
}

function thousands(value: number): string {
  return value.toLocaleString('en');
}

function barTable(bars: Bar[]): string {
  const number = (value: number, unit: Bar['unit']) => `${unit === 'MiB' ? value.toFixed(0) : value.toFixed(2)} ${unit}`;
  const rows = bars.map(({ what, value, limit, unit, isMet, detail = '' }) => [
    `${isMet ? 'met   ' : 'MISSED'}  ${what}`,
    number(value, unit),
    `≤ ${number(limit, unit)}`,
    detail,
  ]);
  return `Bars\n${table([['', 'measured', 'bar', ''], ...rows])}`;
}

/** The first column to the left, the others to the right. */
function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: string[]) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}
