import { MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { History, Moment } from './history.ts';
import type { AnyResource } from './kube-double.ts';
import { type Fields, objectOf } from './mutation-oracle.ts';
import { declares, isLetGo, isLooking, lower, readMark } from './ownership-oracle.ts';

/**
 * Who has what in lldap, by what happened and by no rule of the operator: who made an object or took it over, who was told
 * to keep it, and what people made. The promises:
 *
 * 1. What a resource has made or taken over is written to and deleted by no other while it is there.
 * 2. What was told to stay stays, under its name, until a resource that declares this name takes it over.
 * 3. What a person made is deleted only by a resource whose deletionPolicy says so.
 */
export class Possession {
  readonly #history: History;
  /** By the object's uuid: the uid of the resource that has it, and the moment since when. */
  readonly #had = new Map<string, { uid: string; since: number }>();
  /** By the object's uuid: the uid of the resource that kept it. */
  readonly #kept = new Map<string, string>();
  readonly #byPeople = new Set<string>();

  constructor(history: History) {
    this.#history = history;
  }

  /** Before an update or a deletion: the promise that it breaks. @param since the moment of the reading that led to it */
  brokenBy(self: AnyResource, since: number, operation: string, variables: Fields): string | undefined {
    const object = objectOf(operation, variables, this.#history.current);
    if (!object) return undefined;
    const { uuid, name } = object;
    const had = this.#had.get(uuid);
    const isHolding = ({ resources, objects }: Moment) =>
      objects.some((o) => o.uuid === uuid) && [...resources.values()].some((r) => r.metadata.uid === had?.uid && !isLetGo(r));
    if (had && had.uid !== self.metadata.uid && had.since <= since && this.#history.since(since).every(isHolding))
      return 'what a resource has made or taken over is no other’s while it is there';
    const keeper = this.#kept.get(uuid);
    if (keeper !== undefined && keeper !== self.metadata.uid) {
      if (declares(self) !== lower(name)) return 'what was told to stay stays, under its name';
      this.#kept.delete(uuid);
    }
    if (operation.startsWith('delete') && this.#byPeople.has(uuid) && self.spec.deletionPolicy !== 'Delete')
      return 'what a person made is deleted only if deletionPolicy says so';
    return undefined;
  }

  /** After a mutation for a resource. */
  note(self: AnyResource, operation: string, variables: Fields, result: unknown): void {
    if (operation.startsWith('create')) this.#take((result as { uuid: string }).uuid, self);
    const object = objectOf(operation, variables, this.#history.current);
    const change = (variables.user ?? variables.group) as { insertAttributes?: { name: string; value: string[] }[] } | undefined;
    const written = change?.insertAttributes?.find((a) => a.name === MARK_ATTRIBUTE);
    if (!object || !written) return;
    // A mark that reached another object than it names tells nobody any more whose that one is.
    if (readMark(written.value[0], object.uuid)) this.#take(object.uuid, self);
    else this.#had.delete(object.uuid);
  }

  /** A resource is gone. */
  gone(resource: AnyResource): void {
    const { kind, metadata, spec } = resource;
    for (const object of this.#history.current.objects) {
      const mark = readMark(object.mark, object.uuid);
      const isTold =
        spec.deletionPolicy === 'Retain' || isLooking(resource) || (spec.deletionPolicy === undefined && mark?.origin === 'adopted');
      if (object.kind === kind && mark?.uid === metadata.uid && isTold) this.#kept.set(object.uuid, metadata.uid);
    }
  }

  /** A person made it. */
  madeByHand(uuid: string): void {
    this.#byPeople.add(uuid);
  }

  /** A person changed a mark, or all of lldap went back to a backup: nobody knows any more. */
  forget(uuid?: string): void {
    for (const map of [this.#had, this.#byPeople]) {
      if (uuid === undefined) map.clear();
      else map.delete(uuid);
    }
  }

  /** Resources are back that had been gone. */
  back(resources: Iterable<AnyResource>): void {
    const uids = new Set([...resources].map(({ metadata }) => metadata.uid));
    for (const [uuid, keeper] of this.#kept) if (uids.has(keeper)) this.#kept.delete(uuid);
  }

  #take(uuid: string, { metadata }: AnyResource): void {
    this.#had.set(uuid, { uid: metadata.uid, since: this.#history.now });
  }
}
