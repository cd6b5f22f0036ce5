import { DATABASE_TEXTS, type Dialect, notDefined, Refusal } from './texts.ts';
import type { AttributeType } from './values.ts';

/** The attributes that users or groups may have: lldap's own and those that were added. */

export type Target = 'user' | 'group';

export interface Definition {
  name: string;
  attributeType: AttributeType;
  isList: boolean;
  isVisible: boolean;
  isEditable: boolean;
  isHardcoded: boolean;
  isReadonly: boolean;
}

export type Definitions = Record<Target, Map<string, Definition>>;

/** lldap folds ids and attribute names by ASCII alone. */
export function fold(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

export function ownDefinitions(): Definitions {
  const own = (name: string, attributeType: AttributeType, isEditable: boolean): [string, Definition] => [
    name,
    { name, attributeType, isList: false, isVisible: true, isEditable, isHardcoded: true, isReadonly: !isEditable },
  ];
  return {
    user: new Map([
      own('avatar', 'JPEG_PHOTO', true),
      own('creation_date', 'DATE_TIME', false),
      own('display_name', 'STRING', true),
      own('first_name', 'STRING', true),
      own('last_name', 'STRING', true),
      own('mail', 'STRING', true),
      own('modified_date', 'DATE_TIME', false),
      own('password_modified_date', 'DATE_TIME', false),
      own('user_id', 'STRING', false),
      own('uuid', 'STRING', false),
    ]),
    group: new Map([
      own('creation_date', 'DATE_TIME', false),
      own('display_name', 'STRING', true),
      own('group_id', 'INTEGER', false),
      own('modified_date', 'DATE_TIME', false),
      own('uuid', 'STRING', false),
    ]),
  };
}

export function define(
  definitions: Definitions,
  target: Target,
  added: Omit<Definition, 'isHardcoded' | 'isReadonly'>,
  dialect: Dialect,
): void {
  const name = fold(added.name);
  const invalid = [...new Set(name)].filter((letter) => !/[\p{L}\p{N}-]/u.test(letter));
  if (invalid.length > 0) {
    const which = target === 'user' ? ` Invalid chars found: ${invalid.join(', ')}` : '';
    throw new Refusal(`Cannot create attribute with invalid name. Valid characters: a-z, A-Z, 0-9, and dash (-).${which}`);
  }
  const other = target === 'user' ? 'group' : 'user';
  const namesake = definitions[other].get(name);
  if (namesake !== undefined && !namesake.isHardcoded && namesake.attributeType !== added.attributeType) {
    const type = TYPE_NAMES[namesake.attributeType];
    throw new Refusal(
      `Internal error: \`A ${other} attribute '${name}' already exists with type ${type}, and a ${target} one must be alike\``,
    );
  }
  // lldap itself takes `mail` and `uuid` a second time, and breaks.
  if (definitions[target].has(name)) throw new Refusal(DATABASE_TEXTS[dialect].attributeExists(target));
  definitions[target].set(name, { ...added, name, isHardcoded: false, isReadonly: false });
}

const TYPE_NAMES: Record<AttributeType, string> = { STRING: 'String', INTEGER: 'Integer', JPEG_PHOTO: 'JpegPhoto', DATE_TIME: 'DateTime' };

export function undefine(definitions: Definitions, target: Target, given: string): void {
  const name = fold(given);
  const found = definitions[target].get(name);
  if (found === undefined) throw new Refusal(notDefined(name));
  if (found.isHardcoded) throw new Refusal(`Permission denied: Attribute ${name} cannot be deleted`);
  definitions[target].delete(name);
}
