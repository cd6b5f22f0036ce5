import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const MODULES = join(import.meta.dirname, '.');

describe('The local Knative', () => {
  it('leaves no process and no file behind when the test run itself is killed', async () => {
    const script = `
      const { LocalProcess } = await import(${JSON.stringify(`${MODULES}/process.ts`)});
      const { theGuard } = await import(${JSON.stringify(`${MODULES}/../guard.ts`)});
      const child = await LocalProcess.start([process.execPath, ${JSON.stringify(`${MODULES}/sample-function.ts`)}], { PORT: '0' }, () => undefined);
      console.log(JSON.stringify({ pid: child.pid, directory: theGuard().directory }));
    `;
    const run = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line]: string[] = await once(createInterface({ input: run.stdout }), 'line');
    const { pid, directory }: { pid: number; directory: string } = JSON.parse(line ?? '');
    assert.ok(isRunning(pid) && existsSync(directory));
    run.kill('SIGKILL');
    while (isRunning(pid) || existsSync(directory)) await sleep(20);
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
