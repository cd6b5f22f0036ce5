import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** The folders of the product, from the top floor down; those of one floor do not import each other. */
const FLOORS = [
  ['functions'],
  ['bootstrap.ts'],
  ['engine'],
  ['lookup', 'service'],
  ['rules'],
  ['events', 'lldap'],
  ['kube'],
  ['telemetry', 'platform', 'constants.ts'],
];

interface Module {
  path: string;
  text: string;
  imports: string[];
}

async function modules(): Promise<Module[]> {
  const files = await Promise.all(
    ['functions', 'shared'].map(async (folder) =>
      (await readdir(join(ROOT, folder), { recursive: true })).filter((name) => name.endsWith('.ts')).map((name) => join(folder, name)),
    ),
  );
  return Promise.all(
    files.flat().map(async (path) => {
      const text = await readFile(join(ROOT, path), 'utf8');
      const imports = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g)].map(([, to = '']) =>
        relative(ROOT, join(ROOT, dirname(path), to)),
      );
      return { path, text, imports };
    }),
  );
}

/** The folder of a module, or its name where it lies loose. */
function roomOf(path: string): string {
  const [top = '', room = ''] = path.split('/');
  return top === 'shared' ? room : top;
}

const floorOf = (path: string) => FLOORS.findIndex((rooms) => rooms.includes(roomOf(path)));

describe('the code', () => {
  it('imports only from its own folder and from lower floors', async () => {
    const all = await modules();
    assert.ok(all.length > 80);
    const upwards = all.flatMap(({ path, imports }) =>
      imports.filter((to) => roomOf(to) !== roomOf(path) && floorOf(to) <= floorOf(path)).map((to) => `${path} imports ${to}`),
    );
    assert.deepEqual(upwards, []);
  });

  it('has a floor for every folder, and no loose file in shared/ but bootstrap and constants', async () => {
    const rooms = new Set((await modules()).map(({ path }) => roomOf(path)));
    assert.deepEqual([...rooms].sort(), FLOORS.flat().sort());
  });

  it('of one function imports nothing of another but its plan, which startup compares with lldap', async () => {
    const functionOf = (path: string) => path.split('/')[1];
    const across = (await modules()).flatMap(({ path, imports }) =>
      /^functions\/(main|all)\.ts$/.test(path) || roomOf(path) !== 'functions'
        ? []
        : imports
            .filter((to) => roomOf(to) === 'functions' && functionOf(to) !== functionOf(path))
            .map((to) => `${functionOf(path)} imports ${to}`),
    );
    assert.deepEqual(
      across.sort(),
      ['attribute-schema', 'group', 'user'].map((kind) => `startup imports functions/${kind}/plan.ts`),
    );
  });

  it('that decides is pure: rules and plans wait for nothing and read no clock', async () => {
    const pure = (await modules()).filter(({ path }) => roomOf(path) === 'rules' || /plan\.ts$/.test(path));
    assert.ok(pure.length > 12);
    for (const { path, text } of pure) {
      const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
      assert.doesNotMatch(
        code,
        /\b(await|async|Promise|Clock|setTimeout|Math\.random|randomBytes)\b|Date\.now|new Date\(\)|performance\./,
        path,
      );
    }
  });

  it('orders texts by code unit, because the first comparison by locale loads ICU and takes 8 ms of a cold start', async () => {
    for (const { path, text } of await modules()) assert.doesNotMatch(text, /\.localeCompare\(|\.toLocale\w+\(|\bIntl\./, path);
  });
});
