import { INSTANCE_LABEL } from '../../shared/constants.ts';
import { BrokerError } from '../../shared/events/broker.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { targetOf } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import type { Answer } from '../../shared/service/server.ts';

/** What the user function does when a Secret changes: asks for a full reconcile of each user whose password is in it. */
export function reconcileUsersOf({ kube, broker, policy }: Pick<Io, 'kube' | 'broker' | 'policy'>) {
  return async ({ namespace, name }: { namespace: string; name: string }): Promise<Answer> => {
    try {
      const { instance, onlyNamespace = namespace } = await policy();
      if (namespace !== onlyNamespace) return { status: 204 };
      const users = await kube.list('LldapUser', {
        namespace,
        labels: { [INSTANCE_LABEL]: instance },
        fields: { 'spec.passwordSecretRef.name': name },
      });
      for (const user of users) await broker.reconcile(targetOf(user));
      return { status: 204 };
    } catch (error) {
      if (!(error instanceof KubeError || error instanceof BrokerError)) throw error;
      return { status: 503, message: error.message };
    }
  };
}
