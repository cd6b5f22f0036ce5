import { attributeSchemaKind } from '../../../functions/attribute-schema/kind.ts';
import { groupKind } from '../../../functions/group/kind.ts';
import { membershipKind } from '../../../functions/membership/kind.ts';
import { createRuns } from '../../../functions/startup/run.ts';
import { userKind } from '../../../functions/user/kind.ts';
import { reconcileUsersOf } from '../../../functions/user/secret-events.ts';
import { createEngine, type Engine } from '../../../shared/engine/engine.ts';
import type { Broker } from '../../../shared/events/broker.ts';
import { createKube } from '../../../shared/kube/client.ts';
import { type Connection, connect, type KubeRequest } from '../../../shared/kube/connection.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import type { KindName } from '../../../shared/kube/resources.ts';
import { createLldapClient } from '../../../shared/lldap/client.ts';
import { foldId } from '../../../shared/lldap/names.ts';
import { createLldapPasswords } from '../../../shared/lldap/passwords.ts';
import type { Credentials } from '../../../shared/lldap/session.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import { createLookup } from '../../../shared/lookup/lookup.ts';
import type { Clock } from '../../../shared/platform/clock.ts';
import type { Config } from '../../../shared/service/config.ts';
import { createLog } from '../../../shared/telemetry/log.ts';

/** One process of each function, as far as it reconciles: what it remembers ends with it. */
export interface Functions {
  engines: Record<KindName, Engine>;
  startup: ReturnType<typeof createRuns>;
  secret: ReturnType<typeof reconcileUsersOf>;
  close(): Promise<void>;
}

/** One request of a function to the API server. */
export interface KubeCall extends KubeRequest {
  /** `user`, `group`, … */
  by: string;
  /** HTTP status, 0 without an answer; 200 for whatever was fine. */
  status: number;
}

export interface FunctionsOptions {
  config: Config;
  clock: Clock;
  broker: Broker;
  log: (line: string) => void;
  credentials: () => Promise<Credentials>;
  /** A file for each function's ServiceAccount. */
  kubeconfigs: Record<string, string>;
  /** Told of each call once it is answered. */
  onCall: (call: KubeCall) => void;
  /** Asked before each call; what it throws is the answer. */
  interfere: (by: string, request: KubeRequest) => Promise<void>;
  random: () => number;
  /** How long one answer of lldap is waited for, over HTTP and LDAP. */
  lldapTimeoutMs: number;
}

export const FUNCTIONS = ['user', 'group', 'membership', 'attribute-schema', 'startup'] as const;

export function createFunctions(options: FunctionsOptions): Functions {
  const { config } = options;
  const io = Object.fromEntries(FUNCTIONS.map((by) => [by, createIo(by, options)])) as Record<(typeof FUNCTIONS)[number], Io>;
  const settings = { ...config, random: options.random };
  return {
    engines: {
      LldapUser: createEngine(userKind(io.user), io.user, settings),
      LldapGroup: createEngine(groupKind, io.group, settings),
      LldapMembership: createEngine(membershipKind, io.membership, settings),
      LldapAttributeSchema: createEngine(attributeSchemaKind, io['attribute-schema'], settings),
    },
    startup: createRuns(io.startup, config),
    secret: reconcileUsersOf(io.user, config.instance),
    async close() {
      for (const one of Object.values(io)) {
        one.kube.close();
        one.lldap.close();
        await one.passwords.close();
      }
    },
  };
}

function createIo(by: string, options: FunctionsOptions): Io {
  const { config, credentials, broker, clock, lldapTimeoutMs: timeoutMs } = options;
  const log = createLog('debug', options.log, { function: by });
  const kube = createKube(watched(by, connect(options.kubeconfigs[by]), options));
  const lldap = createLldapClient({
    url: config.lldapUrl,
    credentials,
    timeoutMs,
    maxCalls: config.lldapMaxCalls,
    logger: log,
  });
  return {
    kube,
    lldap,
    passwords: createLldapPasswords({ url: config.ldapUrl, credentials, timeoutMs, logger: log }),
    broker,
    lookup: createLookup(kube, lldap, config.instance, async () => (config.namespaces === 'own' ? kube.namespace() : undefined)),
    clock,
    log,
    policy: async () => ({
      instance: config.instance,
      operatorNamespace: await kube.namespace(),
      ...(config.namespaces === 'own' && { onlyNamespace: await kube.namespace() }),
      privilegedNamespaces: new Set(config.privilegedNamespaces),
      adoption: config.adoption,
      operatorLogin: foldId((await credentials()).username),
      passwordMinLength: config.passwordMinLength,
    }),
  };
}

function watched(by: string, connection: Connection, { onCall, interfere }: FunctionsOptions): Connection {
  return {
    ...connection,
    async request(request) {
      await interfere(by, request);
      try {
        const answer = await connection.request(request);
        onCall({ ...request, by, status: 200 });
        return answer;
      } catch (error) {
        if (error instanceof KubeError) onCall({ ...request, by, status: error.status });
        throw error;
      }
    },
  };
}
