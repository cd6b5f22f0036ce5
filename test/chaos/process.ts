import { attributeSchemaKind } from '../../functions/attribute-schema/kind.ts';
import { groupKind } from '../../functions/group/kind.ts';
import { membershipKind } from '../../functions/membership/kind.ts';
import { handleDeadLetter } from '../../functions/requeue/dead-letter.ts';
import { createHolds } from '../../functions/requeue/delayed-retries.ts';
import { startupHandler } from '../../functions/startup/routes.ts';
import { createRuns } from '../../functions/startup/run.ts';
import { userKind } from '../../functions/user/kind.ts';
import { reconcileUsersOf } from '../../functions/user/secret-events.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import type { Broker } from '../../shared/events/broker.ts';
import { createKube } from '../../shared/kube/client.ts';
import type { KindName } from '../../shared/kube/resources.ts';
import { createLldapClientOver } from '../../shared/lldap/client.ts';
import { foldId } from '../../shared/lldap/names.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { createLookup } from '../../shared/lookup/lookup.ts';
import type { Config } from '../../shared/service/config.ts';
import type { EventHandler } from '../../shared/service/server.ts';
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
  handlers: Record<string, EventHandler>;
}

export interface Surroundings {
  config: Config;
  operatorNamespace: string;
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

function handlersOf(process: Process, around: Surroundings): Record<string, EventHandler> {
  const { config, log } = around;
  if (process.name === 'requeue') {
    const io = { broker: around.brokerOf(process), log, clock: around.scheduler.clockOf(process) };
    const holds = createHolds(io, config.maxHeld);
    return {
      '/': async (event, context) => {
        if (event.what !== 'requeue') throw new Error(`requeue got ${event.what}`);
        return holds.hold(event, context);
      },
      '/dead-letter': (event, context) => handleDeadLetter(io, event, context),
    };
  }
  const io = createIo(process, around);
  const settings = { ...config, random: () => around.random.below(1000) / 1000 };
  switch (process.name) {
    case 'user':
      return { '/': kindHandler('LldapUser', createEngine(userKind(io), io, settings), reconcileUsersOf(io, config.instance)) };
    case 'group':
      return { '/': kindHandler('LldapGroup', createEngine(groupKind, io, settings)) };
    case 'membership':
      return { '/': kindHandler('LldapMembership', createEngine(membershipKind, io, settings)) };
    case 'attribute-schema':
      return { '/': kindHandler('LldapAttributeSchema', createEngine(attributeSchemaKind, io, settings)) };
    case 'startup':
      return { '/': startupHandler(createRuns(io, config), around.log) };
  }
}

function createIo(
  process: Process,
  { config, operatorNamespace, scheduler, kube: kubeDouble, lldap: lldapDouble, ...around }: Surroundings,
): Io {
  const clock = scheduler.clockOf(process);
  const kube = createKube(kubeDouble.connection(process));
  const credentials = async () => lldapDouble.credentials;
  const lldap = createLldapClientOver(lldapDouble.http(process), { credentials, logger: around.log, clock });
  return {
    kube,
    lldap,
    passwords: lldapDouble.passwords(process),
    broker: around.brokerOf(process),
    lookup: createLookup(kube, lldap, config.instance, async () => undefined),
    clock,
    log: around.log,
    policy: async () => ({
      instance: config.instance,
      operatorNamespace,
      privilegedNamespaces: new Set(config.privilegedNamespaces),
      adoption: config.adoption,
      operatorLogin: foldId(lldapDouble.credentials.username),
      passwordMinLength: config.passwordMinLength,
    }),
  };
}
