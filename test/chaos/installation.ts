import { INSTANCE_LABEL } from '../../shared/constants.ts';
import { type Config, loadConfig } from '../../shared/service/config.ts';

/** The installation of the operator over the doubles. */

export const INSTANCE = 'main';
export const OPERATOR_NAMESPACE = 'op';
export const LABELS = { [INSTANCE_LABEL]: INSTANCE };

/** @param env more settings, as the ConfigMap has them */
export function configOf(env: Record<string, string>): Config {
  return loadConfig({
    LLDAP_INSTANCE: INSTANCE,
    LLDAP_URL: 'http://lldap',
    LLDAP_LDAP_URL: 'ldap://lldap',
    BROKER_URL: 'http://broker',
    PRIVILEGED_NAMESPACES: 'adm',
    SWEEP_EVENTS_PER_SECOND: '10000',
    ...env,
  });
}
