/** The config schema as the fields of a form: what each value is, and where it stands. */

import { dotted } from "../settings/setting-path";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string;
  title?: string;
  description?: string;
  enum?: string[];
  default?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
  required?: string[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

export type Kind =
  | { is: "flag" }
  | { is: "choice"; of: string[] }
  | { is: "number"; whole: boolean; least?: number; above?: number; most?: number; below?: number }
  | { is: "text"; shortest: number; longest: number; pattern: string }
  | { is: "list"; of: Kind }
  | { is: "rows"; columns: Field[] };

export interface Field {
  key: string;
  label: string;
  about: string;
  kind: Kind;
  /** What counts where nothing is set; null where that is nothing. */
  fallback: unknown;
  needed: boolean;
}

export interface Group {
  key: string;
  path: string[];
  label: string;
  about: string;
  fields: Field[];
  groups: Group[];
  /** Its entries have names that the user chooses. */
  named: boolean;
  /** It is such an entry, and can be taken away. */
  chosen: boolean;
}

export function label(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export class Form {
  readonly #root: Schema;

  constructor(root: Schema) {
    this.#root = root;
  }

  /** All fields there are, with the names that are in use below what the user names. */
  tree(paths: readonly (readonly string[])[]): Group {
    return this.#group(this.#root, [], paths, false);
  }

  #group(schema: Schema, path: string[], paths: readonly (readonly string[])[], chosen: boolean): Group {
    const plain = this.#plain(schema);
    const name = path.at(-1) ?? "";
    const about = plain.title && path.length && !plain.additionalProperties ? "" : (schema.description ?? "");
    const made: Group = { key: dotted(path), path, label: chosen ? name : label(name), about, fields: [], groups: [], named: false, chosen };
    const inner = plain.additionalProperties;
    if (typeof inner === "object") {
      made.named = true;
      for (const each of named(paths, path)) this.#add(made, inner, each, paths, true);
    } else {
      for (const [each, property] of Object.entries(plain.properties ?? {})) this.#add(made, property, each, paths, false);
    }
    return made;
  }

  #add(group: Group, schema: Schema, name: string, paths: readonly (readonly string[])[], chosen: boolean): void {
    const path = [...group.path, name];
    if (this.#plain(schema).type === "object") group.groups.push(this.#group(schema, path, paths, chosen));
    else group.fields.push(this.field(schema, path, chosen ? name : label(name)));
  }

  field(schema: Schema, path: string[], name = label(path.at(-1) ?? ""), needed = false): Field {
    const plain = this.#plain(schema);
    return {
      key: dotted(path),
      label: name,
      about: schema.description ?? plain.description ?? "",
      kind: this.#kind(plain),
      fallback: schema.default ?? null,
      needed,
    };
  }

  #kind(schema: Schema): Kind {
    if (schema.enum) return { is: "choice", of: schema.enum };
    switch (schema.type) {
      case "boolean":
        return { is: "flag" };
      case "integer":
      case "number":
        return numeric(schema);
      case "array":
        return this.#several(schema.items ?? {});
      default:
        return { is: "text", shortest: schema.minLength ?? 0, longest: schema.maxLength ?? Infinity, pattern: schema.pattern ?? "" };
    }
  }

  #several(items: Schema): Kind {
    const plain = this.#plain(items);
    if (!plain.properties) return { is: "list", of: this.#kind(plain) };
    const needed = plain.required ?? [];
    return { is: "rows", columns: Object.entries(plain.properties).map(([name, each]) => this.field(each, [name], label(name), needed.includes(name))) };
  }

  /** What a schema refers to, and of what may be left out what it is otherwise. */
  #plain(schema: Schema): Schema {
    if (schema.$ref) return this.#plain(this.#root.$defs?.[schema.$ref.split("/").at(-1) ?? ""] ?? {});
    const some = schema.anyOf?.find((each) => each.type !== "null");
    return some ? this.#plain(some) : schema;
  }
}

function numeric(schema: Schema): Kind {
  return {
    is: "number",
    whole: schema.type === "integer",
    ...(schema.minimum === undefined ? {} : { least: schema.minimum }),
    ...(schema.exclusiveMinimum === undefined ? {} : { above: schema.exclusiveMinimum }),
    ...(schema.maximum === undefined ? {} : { most: schema.maximum }),
    ...(schema.exclusiveMaximum === undefined ? {} : { below: schema.exclusiveMaximum }),
  };
}

/** The names that stand right below a path, in their order. */
function named(paths: readonly (readonly string[])[], path: readonly string[]): string[] {
  const below = paths.filter((each) => each.length > path.length && path.every((part, at) => each[at] === part));
  return [...new Set(below.map((each) => each[path.length] ?? ""))];
}

/** Every field of a group and of those in it. */
export function fieldsOf(group: Group): Field[] {
  return [...group.fields, ...group.groups.flatMap(fieldsOf)];
}

/** The group with only what all the words are found in; null where there is nothing. */
export function sifted(group: Group, words: readonly string[]): Group | null {
  const fits = (field: Field): boolean => words.every((word) => `${field.key} ${field.label} ${field.about}`.toLowerCase().includes(word));
  const fields = group.fields.filter(fits);
  const groups = group.groups.map((each) => sifted(each, words)).filter((each) => each !== null);
  return fields.length || groups.length ? { ...group, fields, groups } : null;
}
