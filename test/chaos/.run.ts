import fc from 'fast-check';
import { scheduleOf } from './generate.ts';
import { play } from './play.ts';
const mix = JSON.parse(process.argv[2] ?? '{}');
const runs = Number(process.argv[3] ?? 100);
const seed = Number(process.argv[4] ?? Date.now() % 1e9);
const counts = new Map<string, number>();
const t = performance.now();
let n = 0;
const out = await fc.check(fc.asyncProperty(scheduleOf(mix), async (s) => {
  n++;
  const w = await play(s);
  for (const [k, v] of w.counts) counts.set(k, (counts.get(k) ?? 0) + v);
}), { numRuns: runs, seed, interruptAfterTimeLimit: Number(process.argv[5] ?? 100000) });
console.log('seed', seed, n, 'schedules', ((performance.now() - t) / n).toFixed(1), 'ms each');
console.log([...counts].sort().map(([k, v]) => `${k} ${v}`).join(', '));
if (out.failed) {
  const s = out.counterexample![0];
  console.log(JSON.stringify({ ...s, steps: 0 }));
  for (const st of s.steps) console.log('  ' + JSON.stringify(st));
  const lines: string[] = [];
  try {
    await play(s, (l) => lines.push(l.replaceAll('/apis/lldap-operator.lukidoescode.com/v1alpha1', '').replaceAll('/namespaces','')));
  } catch (e) { console.log(lines.join('\n').slice(-Number(process.env.TAIL ?? 6000))); console.log(String(e instanceof Error && e.name === 'Violation' ? e.message : (e as Error).stack)); }
  (await import('node:fs')).writeFileSync('/tmp/last.json', JSON.stringify(s));
}
