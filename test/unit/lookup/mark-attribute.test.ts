import assert from 'node:assert/strict';
import { BrokerError } from '../../../shared/events/broker.ts';
import { type AttributeDefinition, LldapError } from '../../../shared/lldap/api.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import { defineMarkAttributes, restoreMarkAttributes } from '../../../shared/lookup/mark-attribute.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { definition } from '../support/examples.ts';

const MARK = { name: 'k8s-owner', type: 'String', isList: false, isVisible: false, isEditable: false } as const;

/** @param has the targets that have the mark; @param add what lldap answers to a definition; @param as how it is defined */
function bench(has: ('User' | 'Group')[], { add, post, as = {} }: { add?: Error; post?: Error; as?: Partial<AttributeDefinition> } = {}) {
  const added: unknown[][] = [];
  const posted: string[] = [];
  const lines: string[] = [];
  const own = definition({ ...MARK, ...as });
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

describe('shared/lookup/mark-attribute', () => {
  it('are defined for users and groups, hidden from them and not theirs to edit', async () => {
    const { io, added } = bench([]);
    assert.deepEqual(await defineMarkAttributes(io.lldap), { created: 2, altered: [] });
    assert.deepEqual(added, [
      ['User', MARK],
      ['Group', MARK],
    ]);
  });

  it('are defined only where they are missing', async () => {
    const one = bench(['User']);
    assert.deepEqual(await defineMarkAttributes(one.io.lldap), { created: 1, altered: [] });
    assert.deepEqual(one.added, [['Group', MARK]]);
    const none = bench(['User', 'Group']);
    assert.deepEqual(await defineMarkAttributes(none.io.lldap), { created: 0, altered: [] });
    assert.deepEqual(none.added, []);
  });

  for (const as of [{ isEditable: true }, { isVisible: true }, { isList: true }, { type: 'Integer' }] as const) {
    it(`that somebody defined otherwise are left, and named: ${JSON.stringify(as)}`, async () => {
      const { io, added } = bench(['User'], { as });
      assert.deepEqual(await defineMarkAttributes(io.lldap), { created: 1, altered: ['User'] });
      assert.deepEqual(added, [['Group', MARK]]);
    });
  }

  it('that another process defined meanwhile are there all the same', async () => {
    const { io } = bench([], { add: new LldapError('exists', 'lldap has an attribute of this name') });
    assert.deepEqual(await defineMarkAttributes(io.lldap), { created: 0, altered: [] });
  });

  it('that lldap does not take are an error', async () => {
    const { io } = bench([], { add: new LldapError('unavailable', 'lldap does not answer') });
    await assert.rejects(defineMarkAttributes(io.lldap), { message: 'lldap does not answer' });
  });

  it('that were lost lead to a look at everything: whatever lost them lost the marks of all objects', async () => {
    const { io, posted, added, lines } = bench([]);
    await restoreMarkAttributes(io);
    assert.deepEqual(posted, ['full']);
    assert.equal(added.length, 2);
    assert.match(lines.join(''), /"level":"warn","message":"lldap had no definition of the mark/);
  });

  it('that were not lost lead to nothing', async () => {
    const { io, posted } = bench(['User', 'Group']);
    await restoreMarkAttributes(io);
    assert.deepEqual(posted, []);
  });

  it('that were lost stay undefined while the broker does not take the event, so that the next attempt asks again', async () => {
    const { io, added, lines } = bench([], { post: new BrokerError('The broker answered 503.') });
    await restoreMarkAttributes(io);
    assert.deepEqual(added, []);
    assert.match(lines.join(''), /"level":"error","message":"lldap has no definition of the mark.*The broker answered 503/);
  });
});
