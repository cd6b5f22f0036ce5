import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { REASONS } from '../../shared/rules/reasons.ts';
import { COUNTERS, GAUGES } from '../../shared/telemetry/backend.ts';
import { RUN_BY } from '../integration/support/pages.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGES = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...pagesBelow('docs')];

const DECISIONS = readdirSync(join(ROOT, 'docs/decisions'))
  .filter((file) => file !== 'README.md')
  .sort();
const KINDS = ['user', 'group', 'membership', 'attribute-schema'];

function pagesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join(folder, file));
}

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

function withoutFences(page: string): string {
  return read(page).replace(/```[\s\S]*?```/g, '');
}

/** The anchors that GitHub gives a page's headings. */
function anchorsOf(page: string): string[] {
  const headings = [...withoutFences(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map(
    (heading) =>
      `#${heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-')}`,
  );
}

/** The first cells of all tables' rows. */
function firstCells(page: string): string[] {
  return [...read(page).matchAll(/^\| (`[^|]*`) \|/gm)].map(([, cell]) => cell ?? '');
}

describe('the documentation', () => {
  for (const page of PAGES) {
    it(`${page} links to files and headings that exist`, () => {
      const links = [...withoutFences(page).matchAll(/\]\(([^)#\s]*)(#[^)]*)?\)/g)].filter(([, path]) => !path?.startsWith('http'));
      const dead = links.filter(([, path = '', anchor]) => {
        const target = path ? join(dirname(page), path) : page;
        return !existsSync(join(ROOT, target)) || (anchor && !anchorsOf(target).includes(anchor));
      });
      assert.deepEqual(
        dead.map(([link]) => link),
        [],
      );
    });
  }

  for (const page of PAGES) {
    it(`${page} names files that exist`, () => {
      const named = [...withoutFences(page).matchAll(/`((?:crds|docs|functions|knative|scripts|shared|test)\/[\w./-]+)`/g)];
      assert.deepEqual(
        named.map(([, path = '']) => path).filter((path) => !existsSync(join(ROOT, path))),
        [],
      );
    });
  }

  for (const page of ['docs/security.md', 'docs/reliability.md']) {
    it(`${page} names a test for each promise`, () => {
      const rows = [...read(page).matchAll(/^\| promise \| tested in \|\n.*\n((?:\|.*\n)+)/gm)].flatMap(([, table = '']) =>
        table.trim().split('\n'),
      );
      assert.ok(rows.length > 5);
      assert.deepEqual(
        rows.filter((row) => !/`test\/[^`]*`/.test(row)),
        [],
      );
    });
  }

  /** A fence with what it says it holds. */
  const fences = PAGES.flatMap((page) =>
    [...read(page).matchAll(/^ *```(\S*)\n([\s\S]*?)^ *```$/gm)].map(([, language = '', text = '']) => ({ page, language, text })),
  );

  it('has commands only in fences that a test runs: sh, or console with the output', () => {
    assert.deepEqual([...new Set(fences.map(({ language }) => language))].sort(), ['', 'console', 'json', 'sh', 'yaml']);
    const strays = fences.filter(({ language, text }) => language !== 'sh' && /^(kubectl|kn|curl|make|docker|npm|npx|cd) /m.test(text));
    assert.deepEqual(strays, []);
    const pages = new Set(fences.filter(({ language }) => language === 'sh').map(({ page }) => page));
    assert.deepEqual([...pages].sort(), Object.keys(RUN_BY).sort());
    for (const [page, file] of Object.entries(RUN_BY)) {
      const test = read(join('test/integration', file));
      assert.ok(test.includes(`blocksOf('${page}')`), `${file} runs ${page}`);
    }
  });

  it('has Prometheus rules only for metrics that exist', () => {
    const names = [...read('docs/telemetry.md').matchAll(/^ +expr: (.*)$/gm)].flatMap(
      ([, expr = '']) => expr.match(/lldap_operator_\w+/g) ?? [],
    );
    const suffixes = { s: '_seconds', '1': '_ratio' } as Record<string, string>;
    const counters = Object.keys(COUNTERS).map((name) => `${name.replaceAll('.', '_')}_total`);
    const gauges = Object.entries(GAUGES).map(([name, { unit }]) => `${name.replaceAll('.', '_')}${suffixes[unit] ?? ''}`);
    assert.ok(names.length > 5);
    assert.deepEqual(
      names.filter((name) => ![...counters, ...gauges].includes(name)),
      [],
    );
  });

  it('explains every reason in the words of the code, and says what to do', () => {
    const page = read('docs/troubleshooting.md');
    const table = page.slice(page.indexOf('## What the reasons mean'), page.indexOf('## When does the operator retry?'));
    const rows = [...table.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$/gm)];
    assert.deepEqual(
      rows.map(([, reason, meaning]) => [reason, meaning]),
      Object.entries(REASONS),
    );
    for (const [, reason, , remedy] of rows) assert.match(remedy ?? '', /^\S.*\.$/, reason);
  });

  it('lists every metric with its unit', () => {
    const table = Object.fromEntries(
      [...read('docs/telemetry.md').matchAll(/^\| `(lldap_operator\.[\w.]+)` \| (\S+) \|/gm)].map(([, name, unit]) => [name, unit]),
    );
    const units = Object.fromEntries(Object.entries({ ...COUNTERS, ...GAUGES }).map(([name, { unit }]) => [name, unit]));
    assert.deepEqual(table, units);
  });

  it('lists every decision by its title', () => {
    const listed = [...read('docs/decisions/README.md').matchAll(/^\| \[(\d{4})\]\((.*)\) \| (.*) \|$/gm)];
    assert.deepEqual(
      listed.map(([, number, file, title]) => [file, `# ${number}: ${title}`]),
      DECISIONS.map((file) => [file, read(`docs/decisions/${file}`).split('\n')[0]]),
    );
  });

  for (const file of DECISIONS) {
    it(`says of the decision ${file} when and why it was made, and what was rejected`, () => {
      const page = read(`docs/decisions/${file}`);
      assert.ok(page.startsWith(`# ${file.slice(0, 4)}: `));
      assert.match(page, /^Date: \d{4}-\d\d-\d\d\. Status: (accepted|superseded by \[\d{4}\]\(.*\))\.$/m);
      const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
      assert.deepEqual(headings, ['Context', 'Decision', 'Rejected alternatives']);
    });
  }

  it('has a page for each kind', () => {
    assert.deepEqual(readdirSync(join(ROOT, 'docs/kinds')).sort(), KINDS.map((kind) => `${kind}.md`).sort());
  });

  for (const kind of KINDS) {
    it(`has the headings of every kind on the page of ${kind}, in the same order`, () => {
      const headings = [...withoutFences(`docs/kinds/${kind}.md`).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
      assert.deepEqual(headings, ['Example', 'Writing a spec', 'Behaviour', 'Recipes', 'Status']);
    });

    it(`names every field of ${kind}`, () => {
      const crd = parse(read(`crds/lldap${kind.replace('-', '')}.yaml`)) as Crd;
      const { spec, status } = crd.spec.versions[0]?.schema.openAPIV3Schema.properties ?? {};
      const documented = firstCells(`docs/kinds/${kind}.md`).flatMap((cell) =>
        [...cell.matchAll(/`(\w+)`/g)].map(([, field]) => field ?? ''),
      );
      const fields = [...Object.keys(spec?.properties ?? {}), ...Object.keys(status?.properties ?? {})];
      assert.ok(fields.length > 5);
      assert.deepEqual(
        fields.filter((field) => !documented.includes(field)),
        [],
      );
      assert.deepEqual(
        documented.filter((field) => !fields.includes(field)),
        [],
      );
    });

    it(`has an example of ${kind} that uses only fields of the CRD, and all required ones`, () => {
      const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(read(`docs/kinds/${kind}.md`)) ?? [];
      const crd = parse(read(`crds/lldap${kind.replace('-', '')}.yaml`)) as Crd;
      const example = parse(yaml) as { kind: string; spec: object };
      const spec = crd.spec.versions[0]?.schema.openAPIV3Schema.properties.spec;
      assert.equal(example.kind, crd.spec.names.kind);
      for (const field of Object.keys(example.spec)) assert.ok(field in (spec?.properties ?? {}), field);
      for (const field of spec?.required ?? []) assert.ok(field in example.spec, field);
    });
  }
});

interface Crd {
  spec: {
    names: { kind: string };
    versions: { schema: { openAPIV3Schema: { properties: { spec?: Schema; status?: Schema } } } }[];
  };
}
interface Schema {
  properties: Record<string, unknown>;
  required?: string[];
}
