import { type Broker, createBroker } from './events/broker.ts';
import { createKube } from './kube/client.ts';
import { connect } from './kube/connection.ts';
import { LldapError } from './lldap/api.ts';
import { createLldapClient } from './lldap/client.ts';
import { foldId } from './lldap/names.ts';
import { createLldapPasswords } from './lldap/passwords.ts';
import type { Credentials } from './lldap/session.ts';
import type { Io } from './lookup/io.ts';
import { createLookup } from './lookup/lookup.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import { createAuthentication } from './service/authentication.ts';
import { type Config, ConfigError, loadConfig, readCredentials } from './service/config.ts';
import { type EventHandler, serve } from './service/server.ts';
import { createLog, type Log } from './telemetry/log.ts';
import { startTelemetry, stopTelemetry } from './telemetry/telemetry.ts';

/** What every function is made from. */
export interface Base {
  config: Config;
  log: Log;
  broker: Broker;
  clock: Clock;
}

/** What a function that talks to lldap has besides; nothing connects before its first use. */
export interface Reconciling extends Base {
  io: Io;
}

/** Handlers by path. */
export type Routes = Record<string, EventHandler>;

/** Runs a function that reconciles: its credentials must be there from the start. */
export async function runReconciling(name: string, routes: (base: Reconciling) => Routes): Promise<void> {
  await runFunction(name, async (base) => routes({ ...base, io: connectIo(base, await readCredentials(base.config)) }));
}

/** Serves one function until it is told to stop, then ends the process: 0, or 1 with one line when its configuration is wrong. */
export async function runFunction(name: string, routes: (base: Base) => Routes | Promise<Routes>): Promise<void> {
  try {
    const config = loadConfig(process.env);
    await startTelemetry(name, process.env);
    const log = createLog(config.logLevel).with({ function: name });
    const { port, tokenAudience, brokerUrl, brokerTokenFile } = config;
    const authenticate = tokenAudience && createAuthentication(connect(), tokenAudience, systemClock);
    const handlers = await routes({ config, log, broker: createBroker(brokerUrl, name, brokerTokenFile), clock: systemClock });
    const server = await serve({ port, log, routes: handlers, ...(authenticate && { authenticate }) });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => server.stop());
    log.info('serving', { port: server.port });
    await server.closed;
    await stopTelemetry();
    log.info('stopped');
    // Connections that are kept would keep the process, too.
    process.exit(0);
  } catch (error) {
    const line = error instanceof ConfigError ? error.message : error instanceof Error ? error.stack : String(error);
    process.stderr.write(`lldap-operator ${name}: ${line}\n`);
    process.exit(1);
  }
}

function connectIo(base: Base, initial: Credentials): Io {
  const { config, log } = base;
  let login = initial.username;
  const { lldapProblem, ca } = config;
  if (lldapProblem) log.error('lldap cannot be asked', { reason: lldapProblem });
  const credentials = async (): Promise<Credentials> => {
    // Asked for ahead of whatever goes to lldap, so that this is what resources and startup say.
    if (lldapProblem) throw new LldapError('unavailable', lldapProblem);
    const read = await readCredentials(config);
    login = read.username;
    return read;
  };
  return createIo(base, {
    kube: createKube(),
    lldap: createLldapClient({
      url: config.lldapUrl,
      ca,
      credentials,
      maxConcurrentRequests: config.lldapMaxConcurrentRequests,
      log,
    }),
    passwords: createLldapPasswords({ url: config.ldapUrl, ca, baseDn: config.baseDn, credentials, log }),
    random: Math.random,
    operatorLogin: () => login,
  });
}

/**
 * What reconciles reach the world through, over the given clients.
 *
 * @param clients.operatorLogin the account's name as it was read last
 */
export function createIo(
  { config, broker, clock, log }: Base,
  { kube, lldap, passwords, random, operatorLogin }: Pick<Io, 'kube' | 'lldap' | 'passwords' | 'random'> & { operatorLogin(): string },
): Io {
  const onlyNamespace = async () => (config.namespaces === 'own' ? await kube.namespace() : undefined);
  return {
    kube,
    lldap,
    passwords,
    broker,
    lookup: createLookup(kube, lldap, config.instance, onlyNamespace),
    clock,
    random,
    log,
    policy: async () => {
      const only = await onlyNamespace();
      return {
        instance: config.instance,
        operatorNamespace: await kube.namespace(),
        ...(only && { onlyNamespace: only }),
        privilegedNamespaces: new Set(config.privilegedNamespaces),
        adoption: config.adoption,
        operatorLogin: foldId(operatorLogin()),
        passwordMinLength: config.passwordMinLength,
      };
    },
  };
}
