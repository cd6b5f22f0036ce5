import { BrokerError } from '../../shared/events/broker.ts';
import { runReconciling } from '../../shared/function.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { INSTANCE_LABEL } from '../../shared/names.ts';
import { createEngine } from '../../shared/reconcile/engine.ts';
import { kindHandler } from '../../shared/reconcile/handler.ts';
import { targetOf } from '../../shared/reconcile/wake.ts';
import { userKind } from './kind.ts';

await runReconciling('user', ({ config, io }) => {
  const engine = createEngine(userKind(io), io, config);
  return {
    '/': kindHandler('LldapUser', engine, async ({ namespace, name }) => {
      try {
        const users = await io.kube.list('LldapUser', {
          namespace,
          labels: { [INSTANCE_LABEL]: config.instance },
          fields: { 'spec.passwordSecretRef.name': name },
        });
        for (const user of users) await io.broker.reconcile(targetOf(user));
        return { status: 204 };
      } catch (error) {
        if (!(error instanceof KubeError || error instanceof BrokerError)) throw error;
        return { status: 503, message: error.message };
      }
    }),
  };
});
