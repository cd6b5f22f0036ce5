import type { Happening } from '../knative/story.ts';

/** Tells a person what happens inside, a line each, with the seconds since the start. */
export class Narrator {
  readonly #started = performance.now();
  /** Counted for the summary at the end. */
  readonly totals = { events: 0, coldStarts: 0, slowestColdStartMs: 0, deliveries: 0 };
  /** How the install Job ended, once it has. */
  installed: number | null | undefined;
  /** Functions that are running. */
  readonly running = new Set<string>();
  /** What was last told of each resource that waits: a reconcile that looks twice logs the same twice. */
  readonly #waiting = new Map<string, string>();
  #isOver = false;

  section(title: string): void {
    process.stdout.write(`\n${bold(`── ${title} ${'─'.repeat(Math.max(3, 96 - title.length))}`)}\n`);
  }

  say(text: string): void {
    const seconds = ((performance.now() - this.#started) / 1000).toFixed(1).padStart(6);
    for (const line of text.trimEnd().split('\n')) process.stdout.write(`${dim(`${seconds} s`)}  ${line}\n`);
  }

  /** What a command printed, as it printed it. */
  show(command: string, output: string): void {
    process.stdout.write(`\n${bold(`$ ${command}`)}\n${output.trimEnd()}\n\n`);
  }

  /** Listens to the local Knative. */
  hear(happening: Happening): void {
    this.#count(happening);
    const text = describe(happening);
    if (text === undefined || this.#isRepeated(text)) return;
    if (!this.#isOver || happening.what === 'violation') this.say(dim(text));
  }

  /** From here on all is being stopped: what ends then, and what it leaves undone, is no part of the story. */
  end(): void {
    this.#isOver = true;
  }

  #isRepeated(text: string): boolean {
    const [, resource] = /^waiting +([^:]*):/.exec(text) ?? [];
    if (resource === undefined) return false;
    const isRepeated = this.#waiting.get(resource) === text;
    this.#waiting.set(resource, text);
    return isRepeated;
  }

  #count(happening: Happening): void {
    switch (happening.what) {
      case 'accepted':
        this.totals.events++;
        break;
      case 'job':
        this.installed ??= happening.code;
        break;
      case 'delivered':
        this.totals.deliveries++;
        break;
      case 'ready':
        this.totals.coldStarts++;
        this.totals.slowestColdStartMs = Math.max(this.totals.slowestColdStartMs, happening.ms);
        this.running.add(happening.service);
        break;
      case 'stopped':
      case 'crashed':
        this.running.delete(happening.service);
        break;
      default:
    }
  }
}

/** What is worth a line; echoes of the operator's own status writes and the deliveries of all events are not. */
function describe(happening: Happening): string | undefined {
  switch (happening.what) {
    case 'accepted':
      return `event     ${shortType(happening.event.type).padEnd(16)} ${happening.event.kind ?? ''} ${[happening.event.namespace, happening.event.name].filter(Boolean).join('/')}`;
    case 'ready':
      return `function  ${happening.service} started from zero in ${(happening.ms / 1000).toFixed(2)} s`;
    case 'stopped':
      return `function  ${happening.service} was idle and stopped (exit ${happening.code ?? happening.signal})`;
    case 'crashed':
      return `function  ${happening.service} crashed (exit ${happening.code ?? happening.signal})`;
    case 'log':
      return logged(happening.line);
    case 'undelivered':
      return `delivery  of ${shortType(happening.event.type)} to ${happening.to} failed: ${happening.why}`;
    case 'lost':
      return `lost      ${shortType(happening.event.type)} ${happening.event.name ?? ''}: ${happening.why}`;
    case 'job':
      return `job       ${happening.job} ended with ${happening.code}${happening.code === 0 ? '' : `: ${happening.output.trim()}`}`;
    case 'warning':
      return `warning   ${happening.from}: ${happening.message}`;
    case 'violation':
      return `VIOLATION ${happening.message}`;
    default:
      return undefined;
  }
}

function shortType(type: string): string {
  return type.replace('dev.knative.apiserver.', '').replace('com.lukidoescode.lldap-operator.', '');
}

/** Of the functions' logs, what they did in lldap and what kept them from it. */
function logged(line: string): string | undefined {
  const entry = parse(line);
  if (entry?.message !== 'reconciled') return undefined;
  const { kind, namespace, name, did = [], ready, reason, retry, detail, result } = entry;
  const what = `${kind} ${namespace}/${name}`;
  if (result === 'unwritten') return `failed    ${what}: ${detail}`;
  if (result === 'deleted') return `done      ${what}: ${[...did, 'the resource may go'].join(', ')}`;
  if (ready) return did.length > 0 ? `done      ${what}: ${did.join(', ')} → Ready` : undefined;
  const next = retry?.nextTime ? ` (attempt ${retry.attempts}; the next is due at ${retry.nextTime.slice(11, 19)} UTC)` : '';
  return `waiting   ${what}: ${reason}${next}`;
}

interface Entry {
  message?: string;
  result?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  did?: string[];
  ready?: boolean;
  reason?: string;
  detail?: string;
  retry?: { attempts: number; nextTime?: string };
}

function parse(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry;
  } catch {
    return undefined;
  }
}

const colours = process.stdout.isTTY && !process.env.NO_COLOR;

function bold(text: string): string {
  return colours ? `\x1b[1m${text}\x1b[0m` : text;
}

function dim(text: string): string {
  return colours ? `\x1b[2m${text}\x1b[0m` : text;
}
