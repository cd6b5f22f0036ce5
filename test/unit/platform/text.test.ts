import assert from 'node:assert/strict';
import { truncate, truncateBytes } from '../../../shared/platform/text.ts';

describe('shared/platform/text', () => {
  const texts: Record<string, [text: string, max: number, sign: string | undefined, result: string]> = {
    'keeps a text of the maximal length': ['abcd', 4, undefined, 'abcd'],
    'shortens a longer one and shows that': ['abcde', 4, undefined, 'abc…'],
    'shortens without a sign': ['abcde', 4, '', 'abcd'],
    'keeps a character of two code units at the end': ['ab😀', 4, undefined, 'ab😀'],
    'drops half a character before the sign': ['ab😀c', 4, undefined, 'ab…'],
  };
  for (const [name, [text, max, sign, result]] of Object.entries(texts)) it(name, () => assert.equal(truncate(text, max, sign), result));

  const bytes: Record<string, [text: string, max: number, sign: string | undefined, result: string]> = {
    'counts bytes: keeps a text of the maximal length': ['äb', 3, undefined, 'äb'],
    'counts bytes: shortens a longer one, the sign included': ['abcdef', 5, undefined, 'ab…'],
    'counts bytes: drops a character that would be halved': ['aäb', 2, '', 'a'],
  };
  for (const [name, [text, max, sign, result]] of Object.entries(bytes))
    it(name, () => assert.equal(truncateBytes(text, max, sign), result));
});
