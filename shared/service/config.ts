import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Credentials } from '../lldap/session.ts';
import { LEVELS, type Level } from '../telemetry/log.ts';
import { ConfigError, readSettings } from './settings.ts';

/** An installation's settings, from the environment (the ConfigMap `lldap-operator`). */
export interface Config {
  instance: string;
  /** lldap's HTTP address, without a path. */
  lldapUrl: string;
  /** `ldap://` or `ldaps://`. */
  ldapUrl: string;
  /** The problem with these two addresses. It is no error, because only a running function can report it in the status of resources. */
  lldapProblem?: string | undefined;
  /** Read from the directory if not given. */
  baseDn?: string | undefined;
  /** PEM, for both of lldap's addresses. */
  ca?: string | undefined;
  brokerUrl: string;
  /** A file with the token for the broker, if the broker authenticates senders. */
  brokerTokenFile?: string | undefined;
  /** The audience of the token that every caller needs, if the functions authenticate callers. */
  tokenAudience?: string | undefined;
  /** In addition to the operator's namespace. */
  privilegedNamespaces: string[];
  /** Whether the operator serves all namespaces, or only its own. */
  namespaces: 'all' | 'own';
  adoption: 'privileged' | 'all';
  passwordMinLength: number;
  /** In one process. */
  maxConcurrentReconciles: number;
  /** From one process. */
  lldapMaxConcurrentRequests: number;
  /** The longest delay of a retry. */
  retryMaxMs: number;
  /** In one process of requeue. */
  maxDelayedRetries: number;
  /** Events per second. */
  sweepRate: number;
  logLevel: Level;
  /** The mount path of the Secret with `username` and `password`. Functions that do not use lldap have none. */
  credentialsDir?: string | undefined;
  port: number;
}

const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** @throws ConfigError for the first setting that is missing or wrong, except lldap's addresses: see `lldapProblem`. */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const { optional, required, url, number, choice } = readSettings(env);
  let lldapProblem: string | undefined;
  const lldapAddress = (name: string, schemes: string[]): string => {
    try {
      return url(name, schemes);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      lldapProblem = [lldapProblem, error.message].filter(Boolean).join(' ');
      return '';
    }
  };
  const instance = required('LLDAP_INSTANCE', 'give the value of the lldap-instance label that this installation serves');
  if (!LABEL_VALUE.test(instance))
    throw new ConfigError(
      `LLDAP_INSTANCE is "${instance}": it must be a label's value, up to 63 letters, digits, dashes, dots and underscores that begin and end with a letter or digit.`,
    );
  const ca = optional('LLDAP_CA');
  if (ca && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new ConfigError('LLDAP_CA is not a PEM certificate: it must hold "-----BEGIN CERTIFICATE-----".');
  const lldapUrl = lldapAddress('LLDAP_URL', ['http:', 'https:']);
  const ldapUrl = lldapAddress('LLDAP_LDAP_URL', ['ldap:', 'ldaps:']);
  return {
    instance,
    lldapUrl,
    ldapUrl,
    lldapProblem,
    baseDn: optional('LLDAP_BASE_DN'),
    ca,
    brokerUrl: url('BROKER_URL', ['http:', 'https:']),
    brokerTokenFile: optional('BROKER_TOKEN_FILE'),
    tokenAudience: optional('TOKEN_AUDIENCE'),
    privilegedNamespaces: (optional('PRIVILEGED_NAMESPACES') ?? '').split(/[\s,]+/).filter(Boolean),
    namespaces: choice('NAMESPACES', ['all', 'own'], 'all'),
    adoption: choice('ADOPTION', ['privileged', 'all'], 'privileged'),
    passwordMinLength: number('PASSWORD_MIN_LENGTH', 8, 1, 1000),
    maxConcurrentReconciles: number('MAX_CONCURRENT_RECONCILES', 32, 1, 1000),
    lldapMaxConcurrentRequests: number('LLDAP_MAX_CONCURRENT_REQUESTS', 8, 1, 100),
    retryMaxMs: number('RETRY_MAX_SECONDS', 300, 1, 300) * 1000,
    maxDelayedRetries: number('MAX_DELAYED_RETRIES', 1000, 1, 100_000),
    sweepRate: number('SWEEP_EVENTS_PER_SECOND', 50, 1, 10_000),
    logLevel: choice('LOG_LEVEL', LEVELS, 'info'),
    credentialsDir: optional('CREDENTIALS_DIR'),
    port: number('PORT', 8080, 0, 65_535),
  };
}

/** Reads the mounted Secret for each login, so that a rotated password needs no restart. */
export function readCredentials(config: Config): Credentials {
  const dir = config.credentialsDir;
  if (!dir) throw new ConfigError('CREDENTIALS_DIR is not set: mount the Secret with "username" and "password" and name its folder.');
  return { username: readCredential(dir, 'username'), password: readCredential(dir, 'password') };
}

function readCredential(dir: string, key: keyof Credentials): string {
  let value: string;
  try {
    value = readFileSync(join(dir, key), 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`The credentials' key "${key}" cannot be read (${code}): give the Secret both "username" and "password".`);
  }
  if (!value) throw new ConfigError(`The credentials' key "${key}" is empty: give the Secret both "username" and "password".`);
  return value;
}
