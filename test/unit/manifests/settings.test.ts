import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadConfig } from '../../../shared/service/config.ts';
import { ConfigError } from '../../../shared/service/settings.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const DEFAULTS: Record<string, string> = parse(read('knative/base/config.yaml')).data;

/** The rows of the page's table: setting, default, values. */
const ROWS = [...read('docs/configure.md').matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)`)? ?\| ([^|]+) \| [^|]+\|$/gm)].map(
  ([, name = '', value = '', values = '']) => ({ name, value, values }),
);

describe('The page about settings', () => {
  it('has every setting of the ConfigMap, with its default, and no other', () => {
    assert.deepEqual(Object.fromEntries(ROWS.map(({ name, value }) => [name, value])), DEFAULTS);
  });

  it('has defaults that the functions accept and use themselves when nothing is set', () => {
    const required = ['LLDAP_INSTANCE', 'LLDAP_URL', 'LLDAP_LDAP_URL', 'BROKER_URL'];
    const least = Object.fromEntries(required.map((name) => [name, DEFAULTS[name]]));
    assert.deepEqual(loadConfig(DEFAULTS), loadConfig(least));
  });

  const accepts = (name: string, value: string): boolean => {
    try {
      loadConfig({ ...DEFAULTS, [name]: value });
      return true;
    } catch (error) {
      assert.ok(error instanceof ConfigError && error.message.startsWith(name), String(error));
      return false;
    }
  };

  for (const { name, values } of ROWS) {
    const [, from, to] = /^(\d+) to (\d+)/.exec(values) ?? [];
    if (from !== undefined && to !== undefined) {
      it(`gives the range of ${name}`, () => {
        const around = [Number(from) - 1, Number(from), Number(to), Number(to) + 1];
        assert.deepEqual(
          around.map((value) => accepts(name, String(value))),
          [false, true, true, false],
        );
      });
    }
    const choices = [...values.matchAll(/`(\w+)`/g)].map(([, choice]) => choice ?? '');
    if (choices.length > 0) {
      it(`names all values of ${name}`, () => {
        assert.deepEqual(
          [...choices, 'another'].map((choice) => accepts(name, choice)),
          [...choices.map(() => true), false],
        );
        // The message of a refusal names them, too.
        assert.throws(() => loadConfig({ ...DEFAULTS, [name]: 'another' }), new RegExp(`one of ${choices.join(', ')}\\.`));
      });
    }
  }

  it('names the other variables that the functions read', () => {
    const inCode = [
      ...`${read('shared/service/config.ts')}${read('functions/call-startup/main.ts')}`.matchAll(
        /(?:optional|required|number|url|choice)\('([A-Z_]+)'|env\.([A-Z_]+)/g,
      ),
    ]
      .map(([, one, other]) => one ?? other ?? '')
      .filter((name) => !(name in DEFAULTS));
    const page = read('docs/configure.md');
    assert.ok(inCode.length >= 4);
    for (const name of inCode) assert.ok(page.includes(`\`${name}\``), name);
  });
});
