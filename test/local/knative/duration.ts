/**
 * An ISO 8601 duration as Knative's delivery takes it, in milliseconds.
 * @throws Error for anything else: `200ms`, `1s` and zero as a timeout are refused by Knative as well
 */
export function durationMs(text: string): number {
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text);
  const [, days, hours, minutes, seconds] = match ?? [];
  if (!match || [days, hours, minutes, seconds].every((part) => part === undefined)) throw new Error(`not an ISO 8601 duration: ${text}`);
  const inHours = Number(days ?? 0) * 24 + Number(hours ?? 0);
  return Math.round(((inHours * 60 + Number(minutes ?? 0)) * 60 + Number(seconds ?? 0)) * 1000);
}
