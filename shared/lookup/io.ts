import type { Broker } from '../events/broker.ts';
import type { Kube } from '../kube/client.ts';
import type { LldapClient, LldapPasswords } from '../lldap/api.ts';
import type { Clock } from '../platform/clock.ts';
import type { Policy } from '../rules/policy.ts';
import type { Log } from '../telemetry/log.ts';
import type { Lookup } from './lookup.ts';

/** The clients, lookups and time that reconciles use. */
export interface Io {
  kube: Kube;
  lldap: LldapClient;
  passwords: LldapPasswords;
  broker: Broker;
  lookup: Lookup;
  clock: Clock;
  /** From 0 to 1, for the jitter of retries. */
  random(): number;
  log: Log;
  /** Asked for at each reconcile, since the operator's account changes when its credentials are rotated. */
  policy(): Promise<Policy>;
}
