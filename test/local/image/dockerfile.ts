/** Reading a Dockerfile as far as this project's goes; whatever else it says is an error, so that nothing is passed over. */

export type Step =
  | { what: 'arg'; name: string; value?: string }
  | { what: 'workdir'; path: string }
  | { what: 'copy'; from?: string; sources: string[]; to: string }
  | { what: 'run'; command: string }
  | { what: 'env'; variables: Record<string, string> }
  | { what: 'user'; user: string }
  | { what: 'expose'; port: string }
  | { what: 'entrypoint'; command: string[] };

export interface Stage {
  /** What `FROM` says, before arguments are filled in. */
  base: string;
  name?: string;
  steps: Step[];
}

export interface Dockerfile {
  /** The arguments before the first stage, with their defaults. */
  args: Record<string, string>;
  stages: Stage[];
}

/** @throws Error naming the line that is not understood */
export function parseDockerfile(text: string): Dockerfile {
  const file: Dockerfile = { args: {}, stages: [] };
  for (const line of text.split('\n')) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, instruction = '', rest = ''] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? [];
    const stage = file.stages.at(-1);
    if (instruction === 'FROM') file.stages.push(readFrom(rest));
    else if (stage) stage.steps.push(readStep(instruction, rest, line));
    else if (instruction === 'ARG') {
      const { name, value = '' } = readArg(rest);
      file.args[name] = value;
    } else throw new Error(`not understood before the first FROM: ${line}`);
  }
  return file;
}

/** `${NAME}` by its value. @throws Error for a name without one */
export function expand(text: string, args: Record<string, string>): string {
  return text.replace(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = args[name];
    if (value === undefined) throw new Error(`no value for \${${name}}`);
    return value;
  });
}

function readFrom(rest: string): Stage {
  const [base = '', as, name] = rest.split(/\s+/);
  return { base, ...(as === 'AS' && name && { name }), steps: [] };
}

function readArg(rest: string): { name: string; value?: string } {
  const [name = '', value] = rest.split('=');
  return value === undefined ? { name } : { name, value };
}

function readStep(instruction: string, rest: string, line: string): Step {
  switch (instruction) {
    case 'ARG':
      return { what: 'arg', ...readArg(rest) };
    case 'WORKDIR':
      return { what: 'workdir', path: rest };
    case 'COPY':
      return readCopy(rest);
    case 'RUN':
      return { what: 'run', command: rest };
    case 'ENV':
      return { what: 'env', variables: Object.fromEntries(rest.split(/\s+/).map((each) => each.split('='))) };
    case 'USER':
      return { what: 'user', user: rest };
    case 'EXPOSE':
      return { what: 'expose', port: rest };
    case 'ENTRYPOINT':
      // Only the exec form is JSON: in the shell form a shell would get the signals.
      return { what: 'entrypoint', command: JSON.parse(rest) };
    default:
      throw new Error(`not understood: ${line}`);
  }
}

function readCopy(rest: string): Step {
  const words = rest.split(/\s+/);
  const from = /^--from=(.+)$/.exec(words[0] ?? '')?.[1];
  const paths = from ? words.slice(1) : words;
  return { what: 'copy', ...(from && { from }), sources: paths.slice(0, -1), to: paths.at(-1) ?? '' };
}
