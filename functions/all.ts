import { runFunction, runReconciling } from '../shared/bootstrap.ts';
import { routes as attributeSchema } from './attribute-schema/routes.ts';
import { routes as group } from './group/routes.ts';
import { routes as membership } from './membership/routes.ts';
import { routes as requeue } from './requeue/routes.ts';
import { routes as startup } from './startup/routes.ts';
import { routes as user } from './user/routes.ts';

/**
 * The functions that serve, by name. They share one file of the bundle: a cold start reads it in less time than the twenty
 * files that its function alone would need, and Node compiles only what runs.
 */
export const FUNCTIONS: Record<string, () => Promise<void>> = {
  user: () => runReconciling('user', user),
  group: () => runReconciling('group', group),
  membership: () => runReconciling('membership', membership),
  'attribute-schema': () => runReconciling('attribute-schema', attributeSchema),
  startup: () => runReconciling('startup', startup),
  requeue: () => runFunction('requeue', requeue),
};
