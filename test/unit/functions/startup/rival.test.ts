import assert from 'node:assert/strict';
import { findRival } from '../../../../functions/startup/rival.ts';
import { createListReducer } from '../../../../shared/kube/listed.ts';
import type { KindName, ResourceOf } from '../../../../shared/kube/resources.ts';
import { group, user } from '../../support/examples.ts';

const toListed = <K extends KindName>(resource: ResourceOf[K]) => createListReducer<K>()(resource);

const mine = toListed(user());
const withRival = (rival: string) => findRival([mine, { ...toListed(group()), rival }]);

describe('a rival operator', () => {
  it('is named, with a resource whose status it writes', () => {
    assert.equal(
      withRival('manager'),
      "Another operator (manager) writes the status of LldapGroup team/crew: stop it, or the two undo each other's work.",
    );
  });

  it('is not there where nobody else writes Ready', () => assert.equal(findRival([mine]), undefined));

  it('is called by the characters of managers’ names alone, 64 at most, since a tenant may have invented it', () => {
    assert.match(withRival('call +49 30: the <b>admin</b>\npassword') ?? '', /^Another operator \(call4930thebadmin\/bpassword\) writes/);
    assert.match(withRival('x'.repeat(200)) ?? '', /^Another operator \(x{63}…\) writes/);
    assert.match(withRival('Fleet_manager/v1.2-rc') ?? '', /^Another operator \(Fleet_manager\/v1\.2-rc\) writes/);
  });
});
