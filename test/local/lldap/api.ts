import { buildSchema, type DocumentNode, type ExecutionResult, execute, GraphQLError, Kind, parse, validate } from 'graphql';
import type { Caller } from './auth.ts';
import type { Directory } from './directory.ts';
import type { Asked } from './faults.ts';
import type { Records } from './records.ts';
import { resolvers } from './resolvers.ts';
import { SDL } from './sdl.ts';
import type { Dialect } from './texts.ts';

export interface GraphqlRequest {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
}

/** A request that is in order and can be carried out, or the errors that make it none. */
export type Prepared = { document: DocumentNode; asked: Asked[]; mutation: boolean } | { errors: readonly GraphQLError[] };

const SCHEMA = buildSchema(SDL);

export function prepare({ query, variables }: GraphqlRequest): Prepared {
  let document: DocumentNode;
  try {
    document = parse(query);
  } catch (error) {
    if (error instanceof GraphQLError) return { errors: [error] };
    throw error;
  }
  const errors = validate(SCHEMA, document);
  if (errors.length > 0) return { errors };
  const operations = document.definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  const fields = operations.flatMap(({ selectionSet }) => selectionSet.selections);
  const id = idIn(variables ?? {});
  return {
    document,
    asked: fields.flatMap((field) => (field.kind === Kind.FIELD ? [{ operation: field.name.value, ...id }] : [])),
    mutation: operations.some(({ operation }) => operation === 'mutation'),
  };
}

/** Carries out the fields in their order, each on its own; what one did stays when another fails. */
export async function run(
  { query, variables, operationName }: GraphqlRequest,
  context: { directory: Directory; dialect: Dialect; caller: Caller; records: Records | undefined },
): Promise<ExecutionResult> {
  const document = parse(query);
  return await execute({
    schema: SCHEMA,
    document,
    rootValue: recorded(resolvers(context.directory, context.dialect, context.caller), context.records),
    variableValues: variables ?? {},
    operationName: operationName ?? null,
  });
}

const MUTATIONS = new Set(Object.keys(SCHEMA.getMutationType()?.getFields() ?? {}));

type Resolver = (args: Record<string, unknown>) => unknown;

function recorded(root: object, records: Records | undefined): Record<string, Resolver> {
  const wrap = ([operation, resolve]: [string, Resolver]): [string, Resolver] => [
    operation,
    (args) => {
      const entry = { protocol: 'graphql' as const, operation, mutation: MUTATIONS.has(operation), ...idIn(args) };
      try {
        const result = resolve(args);
        records?.add({ ...entry, outcome: 'ok' });
        return result;
      } catch (error) {
        records?.add({ ...entry, outcome: error instanceof Error ? error.message : String(error) });
        throw error;
      }
    },
  ];
  return Object.fromEntries(Object.entries(root).map(wrap));
}

/** What a call is about: a user's or a group's id, both for a membership, or the name of what is new. */
function idIn(args: Record<string, unknown>): { id?: string | number } {
  const inner = [args.user, args.group, args.request].find(isObject) ?? {};
  const { userId, groupId, name } = args;
  if (userId !== undefined && groupId !== undefined) return { id: `${userId}:${groupId}` };
  const id = userId ?? groupId ?? inner.id ?? inner.displayName ?? name;
  return typeof id === 'string' || typeof id === 'number' ? { id } : {};
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
