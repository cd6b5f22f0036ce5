import * as schema from '../../functions/attribute-schema/routes.ts';
import * as group from '../../functions/group/routes.ts';
import * as membership from '../../functions/membership/routes.ts';
import * as startup from '../../functions/startup/routes.ts';
import * as user from '../../functions/user/routes.ts';
import type { KindName } from '../../shared/kube/resources.ts';

/** The routes of the functions that use lldap. */
export const ROUTES = {
  user: user.routes,
  group: group.routes,
  membership: membership.routes,
  'attribute-schema': schema.routes,
  startup: startup.routes,
};

/** The function that reconciles a kind. */
export const FUNCTION_OF = {
  LldapUser: 'user',
  LldapGroup: 'group',
  LldapMembership: 'membership',
  LldapAttributeSchema: 'attribute-schema',
} as const satisfies Record<KindName, keyof typeof ROUTES>;
