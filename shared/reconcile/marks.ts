import type { Broker } from '../events/broker.ts';
import type { AttributeTarget } from '../kube/resources.ts';
import { type LldapClient, LldapError } from '../lldap/api.ts';
import type { Log } from '../log.ts';
import { MARK_ATTRIBUTE } from '../names.ts';

/** Defines the mark's attributes in lldap where they are missing; answers how many it made. */
export async function defineMarks(lldap: LldapClient): Promise<number> {
  const schema = await lldap.schema();
  let made = 0;
  for (const target of ['User', 'Group'] as const) {
    if (!schema[target].some((a) => a.name === MARK_ATTRIBUTE) && (await define(lldap, target))) made++;
  }
  return made;
}

async function define(lldap: LldapClient, target: AttributeTarget): Promise<boolean> {
  try {
    await lldap.addAttribute(target, { name: MARK_ATTRIBUTE, type: 'String', isList: false, isVisible: false, isEditable: false });
    return true;
  } catch (error) {
    if (error instanceof LldapError && error.kind === 'exists') return false;
    throw error;
  }
}

/** For a pass that met lldap without the mark: whatever lost it (a restore, a person) lost the marks of all objects. */
export async function restoreMarks(io: { lldap: LldapClient; broker: Broker; log: Log }): Promise<void> {
  const made = await defineMarks(io.lldap);
  if (made === 0) return;
  io.log.warn('lldap had no definition of the mark; made it, and asked for a full run of startup');
  await io.broker.startup('full').catch((error: unknown) => io.log.error('startup could not be asked for', { reason: String(error) }));
}
