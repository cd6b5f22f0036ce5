import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REASONS } from '../../../shared/rules/reasons.ts';

const ROOT = join(import.meta.dirname, '../../..');
const TABLE = 'shared/rules/reasons.ts';

/** The sources without comments, so that a reason that is only spoken of does not count. */
const sources = ['shared', 'functions']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.ts') && file !== TABLE)
  .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '') }));

/** Where sources name a reason: in a finding or Event, and as the one that a failure carries. */
const USES = [
  /\breason: '(\w+)'/g,
  /\b(?:invalid|notReady|taken)\(\s*'(\w+)'/g,
  /\bnew Failure\(\s*'\w+',\s*'(\w+)'/g,
  /\bHOPELESS_REASONS = new Set\(\[([^\]]*)\]\)/g,
];

function used(text: string): string[] {
  return USES.flatMap((use) => [...text.matchAll(use)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []));
}

describe('shared/rules/reasons', () => {
  it('finds the sources', () => {
    assert.ok(sources.length > 50);
    assert.deepEqual(used("reason: 'One', invalid(\n  'Two', new Failure('Bug', 'Three'"), ['One', 'Two', 'Three']);
  });

  for (const { file, text } of sources) {
    const unknown = used(text).filter((reason) => !Object.hasOwn(REASONS, reason));
    if (used(text).length === 0) continue;
    it(`every reason that ${file} gives is in the table`, () => assert.deepEqual(unknown, []));
  }

  for (const reason of Object.keys(REASONS)) {
    it(`${reason} is given somewhere`, () => {
      assert.ok(sources.some(({ text }) => used(text).includes(reason)));
    });
  }

  it('is one sentence or more each, in words for people', () => {
    for (const [reason, sentence] of Object.entries(REASONS)) {
      assert.match(reason, /^[A-Z][A-Za-z]+$/);
      assert.match(sentence, /^\S.*\.$/, reason);
    }
  });
});
