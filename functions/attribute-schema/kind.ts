import type { ReconcileContext } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapAttributeSchema } from '../../shared/kube/resources.ts';
import { resourcesNamingAttribute, targetOf } from '../../shared/lookup/dependents.ts';
import { UNREADY } from '../../shared/lookup/lookup.ts';
import { desiredDefinition } from '../../shared/rules/attributes.ts';
import { claimsName, isDeleting } from '../../shared/rules/predicates.ts';
import { declaredName, refOf } from '../../shared/rules/resource-names.ts';
import { type Observed, plan, planDeletion, type Step } from './plan.ts';

type SchemaContext = ReconcileContext<'LldapAttributeSchema'>;

/** Definitions of custom attributes. */
export const attributeSchemaKind: Kind<'LldapAttributeSchema', undefined, Observed, Step> = {
  name: 'LldapAttributeSchema',
  refuse: () => undefined,
  isUnchanged: async () => true,
  hasDependencies: () => false,
  findDependencies: async () => undefined,
  observe: readDefinition,
  plan,
  async observeDeletion(context) {
    const others = (await schemasClaiming(context)).filter(claimsName);
    const [user] = await resourcesUsing(context);
    return {
      ...(await readDefinition(context)),
      isAlsoDeclared: others.length > 0,
      ...(user && { usedBy: `The ${user.kind} ${refOf({ metadata: user })}` }),
    };
  },
  planDeletion,
  async apply(step, { io, resource, draft }) {
    const { target } = resource.spec;
    const name = declaredName(resource);
    if (step.do === 'delete') return io.lldap.deleteAttribute(target, name);
    await io.lldap.addAttribute(target, { name, ...desiredDefinition(resource) });
    draft.created = true;
  },
  describe: (step) => (step.do === 'create' ? 'defined the attribute' : 'deleted the attribute'),
  preview: async (step) => (step.do === 'create' ? 'define the attribute' : undefined),
  async findDependents(context, { becameReady, gone }) {
    // A resource that declares the same attribute may have found this definition still there, or another one in its way.
    if (gone) return (await schemasClaiming(context)).map(targetOf);
    if (!becameReady) return [];
    return resourcesUsing(context, UNREADY);
  },
};

/** Other resources that declare the same attribute. */
async function schemasClaiming({ io, resource }: SchemaContext): Promise<LldapAttributeSchema[]> {
  return (await io.lookup.all('LldapAttributeSchema')).filter(
    (s) =>
      s.metadata.uid !== resource.metadata.uid &&
      !isDeleting(s) &&
      s.spec.target === resource.spec.target &&
      declaredName(s) === declaredName(resource),
  );
}

async function readDefinition({ io, resource }: SchemaContext): Promise<Observed> {
  const definitions = (await io.lldap.schema())[resource.spec.target];
  return { definition: definitions.find((a) => a.name === declaredName(resource)) };
}

function resourcesUsing({ io, resource }: SchemaContext, selection?: typeof UNREADY) {
  return resourcesNamingAttribute(io, resource.spec.target === 'User' ? 'LldapUser' : 'LldapGroup', declaredName(resource), selection);
}
