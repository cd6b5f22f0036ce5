import assert from 'node:assert/strict';
import { createIo, type Reconciling } from '../../../shared/bootstrap.ts';
import type { Broker } from '../../../shared/events/broker.ts';
import type { OperatorEvent } from '../../../shared/events/parse.ts';
import { createKube } from '../../../shared/kube/client.ts';
import { type Connection, connect, type KubeRequest } from '../../../shared/kube/connection.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import { createLldapClient } from '../../../shared/lldap/client.ts';
import { createLldapPasswords } from '../../../shared/lldap/passwords.ts';
import type { Credentials } from '../../../shared/lldap/session.ts';
import type { Clock } from '../../../shared/platform/clock.ts';
import type { Config } from '../../../shared/service/config.ts';
import type { Answer } from '../../../shared/service/server.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { ROUTES } from '../../support/functions.ts';

export type FunctionName = keyof typeof ROUTES;
export const FUNCTIONS = Object.keys(ROUTES) as FunctionName[];

/** One process of each function that reconciles: what it remembers ends with it. */
export interface Functions {
  /** Answers one event as the function does, with what it found and did. */
  handle(by: FunctionName, event: OperatorEvent): Promise<Answer>;
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
  credentials: () => Credentials;
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

export function createFunctions(options: FunctionsOptions): Functions {
  const bases = Object.fromEntries(FUNCTIONS.map((by) => [by, createBase(by, options)])) as Record<FunctionName, Reconciling>;
  const handlers = Object.fromEntries(FUNCTIONS.map((by) => [by, ROUTES[by](bases[by])['/']]));
  return {
    async handle(by, event) {
      const handler = handlers[by] ?? assert.fail(`no handler of ${by}`);
      return handler(event, { signal: NEVER, stopping: NEVER, representation: true });
    },
    async close() {
      for (const { io } of Object.values(bases)) {
        io.kube.close();
        io.lldap.close();
        await io.passwords.close();
      }
    },
  };
}

const NEVER = new AbortController().signal;

function createBase(by: string, options: FunctionsOptions): Reconciling {
  const { config, credentials, broker, clock, random, lldapTimeoutMs: timeoutMs } = options;
  const log = createLog('debug', options.log, { function: by });
  const read = async () => credentials();
  const base = { config, log, broker, clock };
  const io = createIo(base, {
    kube: createKube(watched(by, connect(options.kubeconfigs[by]), options)),
    lldap: createLldapClient({
      url: config.lldapUrl,
      credentials: read,
      timeoutMs,
      maxConcurrentRequests: config.lldapMaxConcurrentRequests,
      log,
    }),
    passwords: createLldapPasswords({ url: config.ldapUrl, credentials: read, timeoutMs, log }),
    random,
    operatorLogin: () => credentials().username,
  });
  return { ...base, io };
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
