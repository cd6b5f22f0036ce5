import { INSTANCE_LABEL } from '../../shared/constants.ts';
import { BrokerError } from '../../shared/events/broker.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { targetOf } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { shareRead } from '../../shared/platform/concurrency.ts';
import type { Answer } from '../../shared/service/server.ts';

/**
 * What the user function does when a Secret changes: asks for a full reconcile of each user whose password is in it.
 *
 * One fan-out at a time for each Secret, since a thousand users may name it and anybody may send its events. Events that
 * come meanwhile share the next one.
 */
export function reconcileUsersOf({ kube, broker, policy }: Pick<Io, 'kube' | 'broker' | 'policy'>) {
  const fanOuts = new Map<string, { share: () => Promise<Answer>; callers: number }>();

  async function fanOut(namespace: string, name: string): Promise<Answer> {
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
      return { status: 503, message: error instanceof KubeError ? error.brief : error.message };
    }
  }

  return async ({ namespace, name }: { namespace: string; name: string }): Promise<Answer> => {
    const key = `${namespace}/${name}`;
    const shared = fanOuts.get(key) ?? { share: shareRead(() => fanOut(namespace, name)), callers: 0 };
    fanOuts.set(key, shared);
    shared.callers++;
    try {
      return await shared.share();
    } finally {
      if (--shared.callers === 0) fanOuts.delete(key);
    }
  };
}
