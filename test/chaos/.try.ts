import { play } from '/work/main/test/chaos/play.ts';
const base = { processes: 1, skews: [], adoption: 'privileged' as const, maxHeld: 1000, phase: 60, calmSeed: 0 };
const steps: any[] = [
 { do: 'secret', at: 'a/s1', data: {k: 'password-1'}, labelled: true },
 { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { username: 'alice', email: 'a@x', displayName: 'A', passwordSecretRef: {name:'s1', key:'k'} } },
 { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
 { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'team' } },
 { do: 'wait', seconds: 30, seed: 0 },
 { do: 'delete', kind: 'LldapUser', at: 'a/r1' },
 { do: 'wait', seconds: 30, seed: 0 },
];
const w = await play({ ...base, steps }, console.log).catch(e => { console.log(e); return undefined; });
console.log([...(w?.kube.resources.values() ?? [])].map(r => `${r.kind} ${r.metadata.name} ${JSON.stringify(r.status?.conditions?.[0])}`).join('\n'));
