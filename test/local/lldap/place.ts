import { type LocalLldap, startLldap } from './start.ts';

/** An lldap to work with, and how to look into it. */
export interface LldapPlace {
  url: string;
  ldapUrl: string;
  ca?: string;
  admin: { username: string; password: string };
  /** The stand-in, for faults and counts; a real lldap has none. */
  local?: LocalLldap;
  close(): Promise<void>;
}

/**
 * The lldap that `LLDAP_URL`, `LLDAP_LDAP_URL`, `LLDAP_ADMIN_USERNAME` and `LLDAP_ADMIN_PASSWORD` name (and
 * `LLDAP_CA`, PEM), or else the stand-in, in a process of its own, with lldap's own cost of passwords.
 */
export async function openLldap(env: NodeJS.ProcessEnv): Promise<LldapPlace> {
  const url = env.LLDAP_URL;
  if (!url) {
    const local = await startLldap({ separate: true });
    return { url: local.url, ldapUrl: local.ldapUrl, admin: local.admin, local, close: local.close };
  }
  const ldapUrl = env.LLDAP_LDAP_URL;
  const password = env.LLDAP_ADMIN_PASSWORD;
  if (!ldapUrl || !password) throw new Error('LLDAP_URL is set: set LLDAP_LDAP_URL and LLDAP_ADMIN_PASSWORD, too.');
  return {
    url,
    ldapUrl,
    ...(env.LLDAP_CA && { ca: env.LLDAP_CA }),
    admin: { username: env.LLDAP_ADMIN_USERNAME ?? 'admin', password },
    close: async () => {},
  };
}
