import type { LldapAttributeSchema, LldapMembership } from '../../shared/kube/resources.ts';
import { mayKeep } from './consent-oracle.ts';
import type { Moment } from './history.ts';
import type { AnyResource } from './kube-double.ts';
import type { Identity } from './lldap-double.ts';
import { declares, isLooking, lower, mayDelete, ownership, type RuleBook, readMark, recordedUuid, refOf } from './ownership-oracle.ts';

/**
 * What may stay in lldap though no resource asks for it: what people made there, what a backup brought back, what was
 * let go by a resource that keeps it. Everything else that stays is an orphan.
 */
export class Ledger {
  /** uuids of users and groups. */
  readonly objects = new Set<string>();
  /** `user uuid|group uuid`. */
  readonly pairs = new Set<string>();
  /** `User name` or `Group name`. */
  readonly definitions = new Set<string>();
  readonly #book: RuleBook;

  constructor(book: RuleBook) {
    this.#book = book;
  }

  /** Everything that is there now may stay: after a restore, or at the start. */
  keepAll(objects: readonly Identity[] = [], definitions: Iterable<string>, pairs: Iterable<string>): void {
    for (const { uuid } of objects) this.objects.add(uuid);
    for (const name of definitions) this.definitions.add(name);
    for (const pair of pairs) this.pairs.add(pair);
  }

  /** A resource is gone: what it leaves by its own rules may stay. */
  gone(resource: AnyResource, moment: Moment, pairs: Iterable<string>): void {
    switch (resource.kind) {
      case 'LldapUser':
      case 'LldapGroup':
        for (const object of moment.objects)
          if (
            object.kind === resource.kind &&
            ownership(object, resource, moment, this.#book) === 'self' &&
            !mayDelete(object, resource, moment, this.#book)
          )
            this.objects.add(object.uuid);
        return;
      case 'LldapMembership':
        this.#membershipGone(resource, moment, pairs);
        return;
      case 'LldapAttributeSchema':
        this.#definitionGone(resource);
        return;
    }
  }

  /** A resource vanished without having been told: the object that it had stays. */
  vanished(resource: AnyResource, moment: Moment): void {
    for (const object of moment.objects) {
      const named =
        object.kind === resource.kind &&
        (declares(resource) === lower(object.name) || ownership(object, resource, moment, this.#book) === 'self');
      if (named) this.objects.add(object.uuid);
    }
  }

  /** After a restore that gave resources new uids, what neither its name nor a status says is theirs stays. */
  forgotten({ resources, objects }: Moment): void {
    for (const { kind, uuid, name, mark } of objects) {
      const { ref, uid } = readMark(mark, uuid) ?? {};
      for (const r of resources.values()) {
        const isMarked = r.kind === kind && refOf(r) === ref && r.metadata.uid !== uid;
        if (isMarked && declares(r) !== lower(name) && recordedUuid(r) !== uuid) this.objects.add(uuid);
      }
    }
  }

  /** A reconcile could not take back what it had made for a resource, and said so: that stays, beside what the resource records. */
  leftInVain(
    { kind, ref, recorded }: { kind: string; ref: string; recorded: string | undefined },
    objects: readonly Identity[],
    pairs: Iterable<string>,
  ): void {
    if (kind === 'LldapMembership') for (const pair of pairs) this.pairs.add(pair);
    for (const object of objects)
      if (object.kind === kind && readMark(object.mark, object.uuid)?.ref === ref && object.uuid !== recorded)
        this.objects.add(object.uuid);
  }

  /** By what it records, and by its names: it may have joined and not told yet. */
  #membershipGone(resource: LldapMembership, moment: Moment, pairs: Iterable<string>): void {
    const { spec, status } = resource;
    const { objects } = moment;
    if (spec.deletionPolicy !== 'Retain' && !isLooking(resource)) return;
    const uuidOf = (kind: string, name: string) => objects.find((o) => o.kind === kind && lower(o.name) === lower(name))?.uuid;
    const declared = `${uuidOf('LldapUser', spec.userName)}|${uuidOf('LldapGroup', spec.groupName)}`;
    const recorded = `${status?.joined?.userUuid}|${status?.joined?.groupUuid}`;
    for (const pair of pairs) {
      const group = objects.find(({ uuid }) => uuid === pair.split('|')[1]);
      const isIts = pair === declared || pair === recorded;
      if (isIts && group && mayKeep(resource, group, moment, this.#book)) this.pairs.add(pair);
    }
  }

  #definitionGone(resource: LldapAttributeSchema): void {
    const { spec, status, metadata } = resource;
    const privileged = metadata.namespace === this.#book.operatorNamespace || this.#book.privilegedNamespaces.has(metadata.namespace);
    const deletes =
      spec.deletionPolicy !== 'Retain' && !isLooking(resource) && (status?.created || (spec.deletionPolicy === 'Delete' && privileged));
    if (!deletes) this.definitions.add(`${spec.target} ${lower(spec.attributeName)}`);
  }
}
