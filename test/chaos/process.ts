import * as schema from '../../functions/attribute-schema/routes.ts';
import * as group from '../../functions/group/routes.ts';
import * as membership from '../../functions/membership/routes.ts';
import * as requeue from '../../functions/requeue/routes.ts';
import * as startup from '../../functions/startup/routes.ts';
import * as user from '../../functions/user/routes.ts';
import { createIo, type Routes } from '../../shared/bootstrap.ts';
import type { Broker } from '../../shared/events/broker.ts';
import { createKube } from '../../shared/kube/client.ts';
import type { KindName } from '../../shared/kube/resources.ts';
import { createLldapClientOver } from '../../shared/lldap/client.ts';
import type { Config } from '../../shared/service/config.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import type { KubeDouble } from './kube-double.ts';
import type { LldapDouble } from './lldap-double.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export const FUNCTIONS = ['user', 'group', 'membership', 'attribute-schema', 'startup', 'requeue'] as const;
export type FunctionName = (typeof FUNCTIONS)[number];

export const FUNCTION_OF: Record<KindName, FunctionName> = {
  LldapUser: 'user',
  LldapGroup: 'group',
  LldapMembership: 'membership',
  LldapAttributeSchema: 'attribute-schema',
};

/** One process of one function: what it remembers ends with it. */
export interface Process {
  readonly name: FunctionName;
  readonly slot: number;
  /** Milliseconds that its clock is ahead. */
  readonly skew: number;
  alive: boolean;
  /** Gets no answer and no time, until it is thawed. */
  frozen: boolean;
  /** Aborted when it was told to end: it finishes what it has, and gets nothing new. */
  readonly stopping: AbortController;
  /** By path. */
  handlers: Routes;
}

export interface Surroundings {
  config: Config;
  scheduler: Scheduler;
  kube: KubeDouble;
  lldap: LldapDouble;
  brokerOf(process: Process): Broker;
  log: Log;
  random: Random;
}

/** The function's own code, over the doubles. */
export function createProcess(name: FunctionName, slot: number, skew: number, around: Surroundings): Process {
  const process: Process = { name, slot, skew, alive: true, frozen: false, stopping: new AbortController(), handlers: {} };
  process.handlers = handlersOf(process, around);
  return process;
}

const ROUTES = {
  user: user.routes,
  group: group.routes,
  membership: membership.routes,
  'attribute-schema': schema.routes,
  startup: startup.routes,
};

function handlersOf(process: Process, around: Surroundings): Routes {
  const { config, log, random, lldap: lldapDouble } = around;
  const base = { config, log, broker: around.brokerOf(process), clock: around.scheduler.clockOf(process) };
  if (process.name === 'requeue') return requeue.routes(base);
  const { clock } = base;
  const credentials = async () => lldapDouble.credentials;
  const io = createIo(base, {
    kube: createKube(around.kube.connection(process)),
    lldap: createLldapClientOver(lldapDouble.http(process), { credentials, log, clock }),
    passwords: lldapDouble.passwords(process),
    random: () => random.below(1000) / 1000,
    operatorLogin: () => lldapDouble.credentials.username,
  });
  return ROUTES[process.name]({ ...base, io });
}
