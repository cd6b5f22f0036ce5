import { isDeepStrictEqual } from 'node:util';
import { MARK_ATTRIBUTE } from '../constants.ts';
import { type Broker, BrokerError } from '../events/broker.ts';
import type { AttributeTarget } from '../kube/resources.ts';
import { type LldapClient, LldapError } from '../lldap/api.ts';
import type { Log } from '../telemetry/log.ts';

/** Hidden and not editable: anybody who can write marks can claim another's object. */
const DEFINITION = { name: MARK_ATTRIBUTE, type: 'String', isList: false, isVisible: false, isEditable: false } as const;

/**
 * Defines the mark's attribute in lldap where it is missing.
 *
 * @returns how many definitions it created, and for which targets lldap has a different definition
 */
export async function defineMarkAttributes(lldap: LldapClient): Promise<{ created: number; altered: AttributeTarget[] }> {
  const { missing, altered } = await findMarkAttributes(lldap);
  let created = 0;
  for (const target of missing) if (await define(lldap, target)) created++;
  return { created, altered };
}

async function findMarkAttributes(lldap: LldapClient): Promise<{ missing: AttributeTarget[]; altered: AttributeTarget[] }> {
  const schema = await lldap.schema();
  const isThere = (target: AttributeTarget) => schema[target].some((a) => a.name === MARK_ATTRIBUTE);
  const isOurs = (target: AttributeTarget) => schema[target].some((a) => isDeepStrictEqual({ ...a, ...DEFINITION }, a));
  const targets: AttributeTarget[] = ['User', 'Group'];
  return { missing: targets.filter((t) => !isThere(t)), altered: targets.filter((t) => isThere(t) && !isOurs(t)) };
}

async function define(lldap: LldapClient, target: AttributeTarget): Promise<boolean> {
  try {
    await lldap.addAttribute(target, DEFINITION);
    return true;
  } catch (error) {
    if (error instanceof LldapError && error.kind === 'exists') return false;
    throw error;
  }
}

/**
 * Defines the mark's attribute after a reconcile found it missing: a restore or a person has removed the marks of all
 * objects. Requests a full run of startup first, since nothing shows the loss once the attribute is defined. If the
 * broker does not accept that event, the attribute stays undefined and the next attempt requests the run again.
 */
export async function restoreMarkAttributes({ lldap, broker, log }: { lldap: LldapClient; broker: Broker; log: Log }): Promise<void> {
  if ((await findMarkAttributes(lldap)).missing.length === 0) return;
  try {
    await broker.startup('full');
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return log.error('lldap has no definition of the mark, and the broker did not accept a full run of startup', { reason: error.message });
  }
  log.warn('lldap had no definition of the mark; requested a full run of startup and defined it');
  await defineMarkAttributes(lldap);
}
