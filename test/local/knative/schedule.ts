const RANGES = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;

/**
 * The first minute after `after`, in UTC, that a CronJob's five fields name: numbers, ranges, lists, steps and `*`.
 * @throws Error for anything else, and for a schedule that names no minute of the next four years
 */
export function nextRun(schedule: string, after: Date): Date {
  const fields = schedule.trim().split(/\s+/);
  if (fields.length !== RANGES.length) throw new Error(`not a schedule of five fields: ${schedule}`);
  const [minutes, hours, days, months, weekdays] = fields.map((field, index) => fieldValues(field, RANGES[index] ?? [0, 0], schedule));
  const anyDay = fields[2] === '*' || fields[4] === '*';
  const time = new Date(after);
  time.setUTCSeconds(0, 0);
  for (let minute = 0; minute < 4 * 366 * 24 * 60; minute += 1) {
    time.setUTCMinutes(time.getUTCMinutes() + 1);
    const day = days?.has(time.getUTCDate()) ?? false;
    const weekday = weekdays?.has(time.getUTCDay()) ?? false;
    // Where both days are restricted, either will do: cron's own oddity.
    const onThatDay = anyDay ? day && weekday : day || weekday;
    if (onThatDay && months?.has(time.getUTCMonth() + 1) && hours?.has(time.getUTCHours()) && minutes?.has(time.getUTCMinutes()))
      return time;
  }
  throw new Error(`the schedule ${schedule} never comes`);
}

function fieldValues(field: string, [lowest, highest]: readonly [number, number], schedule: string): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = /^(?:\*|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(part);
    if (!match) throw new Error(`not a schedule that is understood here: ${schedule}`);
    const from = Number(match[1] ?? lowest);
    const to = Number(match[2] ?? (match[1] === undefined || match[3] !== undefined ? highest : from));
    const step = Number(match[3] ?? 1);
    if (from < lowest || to > highest || from > to || step < 1) throw new Error(`out of range in schedule ${schedule}: ${part}`);
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return values;
}
