import { isDeepStrictEqual } from 'node:util';
import { MARK_ATTRIBUTE } from '../constants.ts';
import { type Broker, BrokerError } from '../events/broker.ts';
import type { AttributeTarget } from '../kube/resources.ts';
import { type LldapClient, LldapError } from '../lldap/api.ts';
import type { Log } from '../telemetry/log.ts';

/** As nobody but the operator may write or see it: who can write marks can claim what is another's. */
const DEFINITION = { name: MARK_ATTRIBUTE, type: 'String', isList: false, isVisible: false, isEditable: false } as const;

/**
 * Defines the mark's attributes in lldap where they are missing.
 *
 * @returns how many it made, and for which targets lldap has another definition than the operator's
 */
export async function defineMarks(lldap: LldapClient): Promise<{ made: number; altered: AttributeTarget[] }> {
  const { missing, altered } = await findMarks(lldap);
  let made = 0;
  for (const target of missing) if (await define(lldap, target)) made++;
  return { made, altered };
}

async function findMarks(lldap: LldapClient): Promise<{ missing: AttributeTarget[]; altered: AttributeTarget[] }> {
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
 * For a pass that met lldap without the mark: whatever lost it (a restore, a person) lost the marks of all objects. A full
 * run of startup is asked for first: once the mark is defined, nothing tells that it was lost. Where the broker does not take
 * that, the mark stays undefined, and the next attempt asks again.
 */
export async function restoreMarks({ lldap, broker, log }: { lldap: LldapClient; broker: Broker; log: Log }): Promise<void> {
  if ((await findMarks(lldap)).missing.length === 0) return;
  try {
    await broker.startup('full');
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return log.error('lldap has no definition of the mark, and startup could not be asked for', { reason: error.message });
  }
  log.warn('lldap had no definition of the mark; asked for a full run of startup, and made it');
  await defineMarks(lldap);
}
