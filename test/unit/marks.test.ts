import assert from 'node:assert/strict';
import { BrokerError } from '../../shared/events/broker.ts';
import { LldapError } from '../../shared/lldap/api.ts';
import { createLog } from '../../shared/log.ts';
import type { Io } from '../../shared/reconcile/kind.ts';
import { defineMarks, restoreMarks } from '../../shared/reconcile/marks.ts';
import { definition } from './examples.ts';

const MARK = { name: 'k8s-owner', type: 'String', isList: false, isVisible: false, isEditable: false };

/** @param has the targets that have the mark; @param add what lldap answers to a definition */
function bench(has: ('User' | 'Group')[], { add, post }: { add?: Error; post?: Error } = {}) {
  const added: unknown[][] = [];
  const posted: string[] = [];
  const lines: string[] = [];
  const own = definition({ name: 'k8s-owner', type: 'String' });
  const io = {
    lldap: {
      schema: async () => ({ User: has.includes('User') ? [own] : [definition()], Group: has.includes('Group') ? [own] : [] }),
      addAttribute: async (...args: unknown[]) => {
        if (add) throw add;
        added.push(args);
      },
    },
    broker: {
      startup: async (mode: string) => {
        if (post) throw post;
        posted.push(mode);
      },
    },
    log: createLog('debug', (line) => lines.push(line)),
  } as unknown as Io;
  return { io, added, posted, lines };
}

describe('shared/reconcile/marks', () => {
  it('are defined for users and groups, hidden from them and not theirs to edit', async () => {
    const { io, added } = bench([]);
    assert.equal(await defineMarks(io.lldap), 2);
    assert.deepEqual(added, [
      ['User', MARK],
      ['Group', MARK],
    ]);
  });

  it('are defined only where they are missing', async () => {
    const one = bench(['User']);
    assert.equal(await defineMarks(one.io.lldap), 1);
    assert.deepEqual(one.added, [['Group', MARK]]);
    const none = bench(['User', 'Group']);
    assert.equal(await defineMarks(none.io.lldap), 0);
    assert.deepEqual(none.added, []);
  });

  it('that another process defined meanwhile are there all the same', async () => {
    const { io } = bench([], { add: new LldapError('exists', 'lldap has an attribute of this name') });
    assert.equal(await defineMarks(io.lldap), 0);
  });

  it('that lldap does not take are an error', async () => {
    const { io } = bench([], { add: new LldapError('unavailable', 'lldap does not answer') });
    await assert.rejects(defineMarks(io.lldap), { message: 'lldap does not answer' });
  });

  it('that were lost lead to a look at everything: whatever lost them lost the marks of all objects', async () => {
    const { io, posted, lines } = bench([]);
    await restoreMarks(io);
    assert.deepEqual(posted, ['full']);
    assert.match(lines.join(''), /"level":"warn","message":"lldap had no definition of the mark/);
  });

  it('that were not lost lead to nothing', async () => {
    const { io, posted } = bench(['User', 'Group']);
    await restoreMarks(io);
    assert.deepEqual(posted, []);
  });

  it('that were lost are a matter for the log, and not of the pass, if the broker does not take the event', async () => {
    const { io, lines } = bench([], { post: new BrokerError('The broker answered 503.') });
    await restoreMarks(io);
    assert.match(lines.join(''), /"level":"error","message":"startup could not be asked for".*The broker answered 503/);
  });
});
