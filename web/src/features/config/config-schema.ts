/** The config schema as the fields of a form: what each value is, and where it stands. */

import { joinSettingPath } from "../settings/setting-path";

export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string;
  title?: string;
  description?: string;
  enum?: string[];
  default?: unknown;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  required?: string[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

export type FieldKind =
  | { is: "flag" }
  | { is: "choice"; of: string[] }
  | { is: "number"; whole: boolean; least?: number; above?: number; most?: number; below?: number }
  | { is: "text"; shortest: number; longest: number; pattern: string }
  | { is: "list"; of: FieldKind }
  | { is: "rows"; columns: ConfigField[] };

export interface ConfigField {
  key: string;
  label: string;
  about: string;
  kind: FieldKind;
  /** What counts where nothing is set; null where that is nothing. */
  fallback: unknown;
  needed: boolean;
}

export interface ConfigGroup {
  key: string;
  path: string[];
  label: string;
  about: string;
  fields: ConfigField[];
  groups: ConfigGroup[];
  /** Its entries have names that the user chooses. */
  named: boolean;
  /** It is such an entry, and can be taken away. */
  chosen: boolean;
}

export function formatLabel(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export class FormBuilder {
  readonly #root: JsonSchema;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** All fields there are, with the names that are in use below what the user names. */
  buildTree(paths: readonly (readonly string[])[]): ConfigGroup {
    return this.#buildGroup(this.#root, [], paths, false);
  }

  #buildGroup(schema: JsonSchema, path: string[], paths: readonly (readonly string[])[], chosen: boolean): ConfigGroup {
    const plain = this.#resolveSchema(schema);
    const name = path.at(-1) ?? "";
    const about = plain.title && path.length && !plain.additionalProperties ? "" : (schema.description ?? "");
    const made: ConfigGroup = { key: joinSettingPath(path), path, label: chosen ? name : formatLabel(name), about, fields: [], groups: [], named: false, chosen };
    const inner = plain.additionalProperties;
    if (typeof inner === "object") {
      made.named = true;
      for (const each of namesBelow(paths, path)) this.#addTo(made, inner, each, paths, true);
    } else {
      for (const [each, property] of Object.entries(plain.properties ?? {})) this.#addTo(made, property, each, paths, false);
    }
    return made;
  }

  #addTo(group: ConfigGroup, schema: JsonSchema, name: string, paths: readonly (readonly string[])[], chosen: boolean): void {
    const path = [...group.path, name];
    if (this.#resolveSchema(schema).type === "object") group.groups.push(this.#buildGroup(schema, path, paths, chosen));
    else group.fields.push(this.buildField(schema, path, chosen ? name : formatLabel(name)));
  }

  buildField(schema: JsonSchema, path: string[], name = formatLabel(path.at(-1) ?? ""), needed = false): ConfigField {
    const plain = this.#resolveSchema(schema);
    return {
      key: joinSettingPath(path),
      label: name,
      about: schema.description ?? plain.description ?? "",
      kind: this.#fieldKind(plain),
      fallback: schema.default ?? null,
      needed,
    };
  }

  #fieldKind(schema: JsonSchema): FieldKind {
    if (schema.enum) return { is: "choice", of: schema.enum };
    switch (schema.type) {
      case "boolean":
        return { is: "flag" };
      case "integer":
      case "number":
        return numberKind(schema);
      case "array":
        return this.#listKind(schema.items ?? {});
      default:
        return { is: "text", shortest: schema.minLength ?? 0, longest: schema.maxLength ?? Infinity, pattern: schema.pattern ?? "" };
    }
  }

  #listKind(items: JsonSchema): FieldKind {
    const plain = this.#resolveSchema(items);
    if (!plain.properties) return { is: "list", of: this.#fieldKind(plain) };
    const needed = plain.required ?? [];
    return { is: "rows", columns: Object.entries(plain.properties).map(([name, each]) => this.buildField(each, [name], formatLabel(name), needed.includes(name))) };
  }

  /** What a schema refers to, and of what may be left out what it is otherwise. */
  #resolveSchema(schema: JsonSchema): JsonSchema {
    if (schema.$ref) return this.#resolveSchema(this.#root.$defs?.[schema.$ref.split("/").at(-1) ?? ""] ?? {});
    const some = schema.anyOf?.find((each) => each.type !== "null");
    return some ? this.#resolveSchema(some) : schema;
  }
}

function numberKind(schema: JsonSchema): FieldKind {
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
function namesBelow(paths: readonly (readonly string[])[], path: readonly string[]): string[] {
  const below = paths.filter((each) => each.length > path.length && path.every((part, at) => each[at] === part));
  return [...new Set(below.map((each) => each[path.length] ?? ""))];
}

/** Every field of a group and of those in it. */
export function listFields(group: ConfigGroup): ConfigField[] {
  return [...group.fields, ...group.groups.flatMap(listFields)];
}

/** The group with only what all the words are found in; null where there is nothing. */
export function filterGroup(group: ConfigGroup, words: readonly string[]): ConfigGroup | null {
  const matchesWords = (field: ConfigField): boolean => words.every((word) => `${field.key} ${field.label} ${field.about}`.toLowerCase().includes(word));
  const fields = group.fields.filter(matchesWords);
  const groups = group.groups.map((each) => filterGroup(each, words)).filter((each) => each !== null);
  return fields.length || groups.length ? { ...group, fields, groups } : null;
}
