import type { Work } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapAttributeSchema } from '../../shared/kube/resources.ts';
import { targetOf, usersOf } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { declares, isDeleting, isReady } from '../../shared/rules/predicates.ts';
import { declaredName, refOf } from '../../shared/rules/resource-names.ts';
import { desired, type Observed, plan, planDeletion, type Step } from './plan.ts';

type SchemaWork = Work<'LldapAttributeSchema'>;

/** Definitions of custom attributes. */
export const attributeSchemaKind: Kind<'LldapAttributeSchema', undefined, Observed, Step> = {
  name: 'LldapAttributeSchema',
  refuse: () => undefined,
  unchanged: async () => true,
  hasDependencies: () => false,
  depend: async () => undefined,
  observe: readDefinition,
  plan,
  async observeDeletion(work) {
    const others = (await namesakes(work)).filter(declares);
    const [user] = await using(work.io, work);
    return { ...(await readDefinition(work)), alsoDeclared: others.length > 0, ...(user && { usedBy: `The ${user.kind} ${refOf(user)}` }) };
  },
  planDeletion,
  async apply(step, { io, resource, draft }) {
    const { target } = resource.spec;
    const name = declaredName(resource);
    if (step.do === 'delete') return io.lldap.deleteAttribute(target, name);
    await io.lldap.addAttribute(target, { name, ...desired(resource) });
    draft.created = true;
  },
  describe: (step) => (step.do === 'create' ? 'defined the attribute' : 'deleted the attribute'),
  async dependants(work, { becameReady, gone }) {
    // One that was declared meanwhile may have found the definition still there, or could not have it so far.
    if (gone) return (await namesakes(work)).map(targetOf);
    if (!becameReady) return [];
    return (await using(work.io, work)).filter((r) => !isReady(r)).map(targetOf);
  },
};

/** Other resources that declare the definition. */
async function namesakes({ io, resource }: SchemaWork): Promise<LldapAttributeSchema[]> {
  return (await io.lookup.all('LldapAttributeSchema')).filter(
    (s) =>
      s.metadata.uid !== resource.metadata.uid &&
      !isDeleting(s) &&
      s.spec.target === resource.spec.target &&
      declaredName(s) === declaredName(resource),
  );
}

async function readDefinition({ io, resource }: SchemaWork): Promise<Observed> {
  const definitions = (await io.lldap.schema())[resource.spec.target];
  return { definition: definitions.find((a) => a.name === declaredName(resource)) };
}

function using(io: Io, { resource }: SchemaWork) {
  return usersOf(io, resource.spec.target === 'User' ? 'LldapUser' : 'LldapGroup', declaredName(resource));
}
