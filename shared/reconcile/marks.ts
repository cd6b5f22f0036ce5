import type { Broker } from '../events/broker.ts';
import type { AttributeTarget } from '../kube/resources.ts';
import { type AttributeDefinition, type LldapClient, LldapError } from '../lldap/api.ts';
import type { Log } from '../log.ts';
import { MARK_ATTRIBUTE } from '../names.ts';

/** As nobody but the operator may write or see it: who can write marks can claim what is another's. */
const DEFINITION = { name: MARK_ATTRIBUTE, type: 'String', isList: false, isVisible: false, isEditable: false } as const;

/**
 * Defines the mark's attributes in lldap where they are missing.
 *
 * @returns how many it made, and for which targets lldap has another definition than the operator's
 */
export async function defineMarks(lldap: LldapClient): Promise<{ made: number; altered: AttributeTarget[] }> {
  const schema = await lldap.schema();
  let made = 0;
  const altered: AttributeTarget[] = [];
  for (const target of ['User', 'Group'] as const) {
    const existing = schema[target].find((a) => a.name === MARK_ATTRIBUTE);
    if (!existing && (await define(lldap, target))) made++;
    if (existing && !isOurs(existing)) altered.push(target);
  }
  return { made, altered };
}

function isOurs({ type, isList, isVisible, isEditable }: AttributeDefinition): boolean {
  return type === DEFINITION.type && !isList && !isVisible && !isEditable;
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

/** For a pass that met lldap without the mark: whatever lost it (a restore, a person) lost the marks of all objects. */
export async function restoreMarks(io: { lldap: LldapClient; broker: Broker; log: Log }): Promise<void> {
  const { made } = await defineMarks(io.lldap);
  if (made === 0) return;
  io.log.warn('lldap had no definition of the mark; made it, and asked for a full run of startup');
  await io.broker.startup('full').catch((error: unknown) => io.log.error('startup could not be asked for', { reason: String(error) }));
}
