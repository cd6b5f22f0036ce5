import * as requeue from '../../functions/requeue/routes.ts';
import { createIo, type Routes } from '../../shared/bootstrap.ts';
import type { Broker } from '../../shared/events/broker.ts';
import { createKube } from '../../shared/kube/client.ts';
import { createLldapClientOver } from '../../shared/lldap/client.ts';
import type { Config } from '../../shared/service/config.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { ROUTES } from '../support/functions.ts';
import type { KubeDouble } from './kube-double.ts';
import type { LldapDouble } from './lldap-double.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export type FunctionName = keyof typeof ROUTES | 'requeue';
export const FUNCTIONS: readonly FunctionName[] = [...(Object.keys(ROUTES) as (keyof typeof ROUTES)[]), 'requeue'];

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
