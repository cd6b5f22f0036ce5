import { type LocalLldap, type LocalLldapOptions, serveLldap } from './server.ts';

/**
 * The stand-in for lldap as a program of its own: `node test/local/lldap/main.ts` prints where it listens and serves
 * until it is told to end. Started by `startLldap`, it takes its options and its orders from there.
 */

/** One method of {@link LocalLldap} to call. */
export interface Order {
  id: number;
  method: keyof LocalLldap;
  args: unknown[];
}

export type Report = { id: number; result: unknown } | { id: number; error: string };

if (process.send === undefined) {
  const lldap = await serveLldap();
  console.log(`A stand-in for lldap, for tests and demonstrations; nothing is kept when it ends.
  HTTP   ${lldap.url}
  LDAP   ${lldap.ldapUrl} (${lldap.baseDn})
  LDAPS  ${lldap.ldapsUrl}
  login  ${lldap.admin.username} / ${lldap.admin.password}`);
} else {
  process.on('disconnect', () => process.exit());
  process.once('message', (options: LocalLldapOptions) => {
    serveLldap(options).then(obey, (error: unknown) => report({ id: 0, error: String(error) }));
  });
}

function obey(lldap: LocalLldap): void {
  const values = Object.entries(lldap).filter(([, value]) => typeof value !== 'function');
  process.on('message', ({ id, method, args }: Order) => {
    const call: unknown = lldap[method];
    if (typeof call !== 'function') return;
    call(...args).then(
      (result: unknown) => report({ id, result }),
      (error: unknown) => report({ id, error: error instanceof Error ? error.message : String(error) }),
    );
  });
  report({ id: 0, result: Object.fromEntries(values) });
}

function report(report: Report): void {
  process.send?.(report);
}
