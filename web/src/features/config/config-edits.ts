/** Changes that are not saved yet: what goes to the server, and what somebody else changed meanwhile. */

import { dotted, split } from "../settings/setting-path";
import { same } from "./field-values";

export interface Value {
  key: string;
  value: unknown;
  from: string;
  secret: boolean;
  live: boolean;
}

export interface ConfigView {
  file: string;
  values: Value[];
  pending: string[];
  trouble: string;
}

export interface Edit {
  value: unknown;
  /** What was typed, as long as it is no good value. */
  text?: string;
  problem: string;
  unset: boolean;
}

export type Values = ReadonlyMap<string, Value>;
export type Edits = ReadonlyMap<string, Edit>;

export interface Clash {
  key: string;
  yours: Edit;
  before: unknown;
  theirs: unknown;
}

/** The values by their keys, in one way to write keys. */
export function valuesOf(view: ConfigView): Map<string, Value> {
  return new Map(view.values.map((value) => [dotted(split(value.key)), value]));
}

export function patchOf(edits: Iterable<[string, Edit]>): { set: Record<string, unknown>; unset: string[] } {
  const all = [...edits];
  return {
    set: Object.fromEntries(all.filter(([, edit]) => !edit.unset).map(([key, edit]) => [key, edit.value])),
    unset: all.filter(([, edit]) => edit.unset).map(([key]) => key),
  };
}

/** Which of one's own changes are about something that another one changed, too, and not to the same. */
export function clashesOf(edits: Edits, before: Values, now: Values): Clash[] {
  const found: Clash[] = [];
  for (const [key, yours] of edits) {
    const old = told(before, key);
    const theirs = told(now, key);
    const moved = !same(old.value, theirs.value) || old.from !== theirs.from;
    const agreed = yours.unset ? theirs.from === "default" : same(theirs.value, yours.value);
    if (moved && !agreed) found.push({ key, yours, before: old.value, theirs: theirs.value });
  }
  return found;
}

/** Changes that somebody else made just so: nothing is left to do for them. */
export function settledOf(edits: Edits, now: Values): string[] {
  return [...edits].filter(([key, edit]) => !edit.problem && done(edit, told(now, key))).map(([key]) => key);
}

function done(edit: Edit, now: Pick<Value, "value" | "from">): boolean {
  return edit.unset ? now.from === "default" : now.from !== "default" && same(now.value, edit.value);
}

/** One value, or all that stands below a key. */
function told(values: Values, key: string): Pick<Value, "value" | "from"> {
  const own = values.get(key);
  if (own) return own;
  const below = [...values].filter(([each]) => each.startsWith(`${key}.`));
  if (!below.length) return { value: null, from: "default" };
  return { value: Object.fromEntries(below.map(([each, value]) => [each.slice(key.length + 1), value.value])), from: below[0]?.[1].from ?? "" };
}
