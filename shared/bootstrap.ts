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
import { type Config, loadConfig, readCredentials } from './service/config.ts';
import { type EventHandler, serve } from './service/server.ts';
import { ConfigError } from './service/settings.ts';
import { createLog, type Log } from './telemetry/log.ts';
import { startTelemetry, stopTelemetry } from './telemetry/telemetry.ts';

/** What every function gets. */
export interface Base {
  config: Config;
  log: Log;
  broker: Broker;
  clock: Clock;
}

/** What a function that uses lldap gets. Nothing connects before its first use. */
export interface Reconciling extends Base {
  io: Io;
}

/** Handlers by path. */
export type Routes = Record<string, EventHandler>;

/** Runs a function that uses lldap. Its credentials must be readable at the start. */
export async function runReconciling(name: string, routes: (base: Reconciling) => Routes): Promise<void> {
  await runFunction(name, (base) => routes({ ...base, io: connectIo(base, readCredentials(base.config)) }));
}

/** Serves one function until the process is told to stop, then ends it with 0. If the configuration is wrong, prints one line and ends with 1. */
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
    // Idle connections would keep the process running.
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
  if (lldapProblem) log.error('the settings for lldap are wrong', { reason: lldapProblem });
  const credentials = async (): Promise<Credentials> => {
    // Every call to lldap reads the credentials first, so this is the message in resources and in startup's summary.
    if (lldapProblem) throw new LldapError('unavailable', lldapProblem);
    const read = readCredentials(config);
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
 * The clients, lookups and settings that reconciles use.
 *
 * @param clients.operatorLogin returns the account's name, as it was read last
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
