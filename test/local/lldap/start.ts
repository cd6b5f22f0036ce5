import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Order, Report } from './main.ts';
import { type LocalLldap, type LocalLldapOptions, serveLldap } from './server.ts';

export type { Fault } from './faults.ts';
export type { Entry } from './records.ts';
export type { LocalLldap, SeenGroup, SeenUser } from './server.ts';

/**
 * Starts the stand-in for lldap. `separate`: in a process of its own, so that the work that passwords cost it holds up
 * nobody else; needed whenever `passwordCost` is `real` and something else runs in this process. Call `close` when done.
 */
export async function startLldap(
  options: LocalLldapOptions & { separate?: boolean } = {},
): Promise<LocalLldap & { close(): Promise<void> }> {
  const { separate, ...rest } = options;
  if (separate !== true) {
    const lldap = await serveLldap(rest);
    return { ...lldap, close: lldap.stop };
  }
  const child = fork(new URL('./main.ts', import.meta.url), { serialization: 'advanced' });
  const ended = once(child, 'exit');
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  child.on('message', (report: Report) => {
    const waiter = waiting.get(report.id);
    waiting.delete(report.id);
    if ('error' in report) waiter?.reject(new Error(report.error));
    else waiter?.resolve(report.result);
  });
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the stand-in for lldap has ended'));
  });
  const answerTo = (id: number) => new Promise<unknown>((resolve, reject) => waiting.set(id, { resolve, reject }));

  const ready = answerTo(0);
  child.send(rest);
  const values = (await ready) as Pick<LocalLldap, 'url' | 'ldapUrl' | 'ldapsUrl' | 'ca' | 'baseDn' | 'admin'>;
  let last = 0;
  const order =
    (method: Order['method']) =>
    async (...args: unknown[]): Promise<never> => {
      last += 1;
      const answer = answerTo(last);
      child.send({ id: last, method, args } satisfies Order);
      return (await answer) as never;
    };
  return {
    ...values,
    stop: order('stop'),
    start: order('start'),
    snapshot: order('snapshot'),
    restore: order('restore'),
    fault: order('fault'),
    heal: order('heal'),
    asked: order('asked'),
    sockets: order('sockets'),
    connections: order('connections'),
    forget: order('forget'),
    edit: order('edit'),
    setPassword: order('setPassword'),
    check: order('check'),
    users: order('users'),
    groups: order('groups'),
    async close() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
