/** Changes that are not saved yet: what goes to the server, and what somebody else changed meanwhile. */

import { joinSettingPath, splitSettingPath } from "../settings/setting-path";
import { isSameValue } from "./field-values";

export interface SettingValue {
  key: string;
  value: unknown;
  from: string;
  secret: boolean;
  live: boolean;
}

export interface ConfigView {
  file: string;
  values: SettingValue[];
  pending: string[];
  trouble: string;
}

export interface SettingEdit {
  value: unknown;
  /** What was typed, as long as it is no good value. */
  text?: string;
  problem: string;
  unset: boolean;
}

export type SettingValues = ReadonlyMap<string, SettingValue>;
export type SettingEdits = ReadonlyMap<string, SettingEdit>;

export interface EditConflict {
  key: string;
  yours: SettingEdit;
  before: unknown;
  theirs: unknown;
}

/** The values by their keys, in one way to write keys. */
export function indexValues(view: ConfigView): Map<string, SettingValue> {
  return new Map(view.values.map((value) => [joinSettingPath(splitSettingPath(value.key)), value]));
}

export function buildPatch(edits: Iterable<[string, SettingEdit]>): { set: Record<string, unknown>; unset: string[] } {
  const all = [...edits];
  return {
    set: Object.fromEntries(all.filter(([, edit]) => !edit.unset).map(([key, edit]) => [key, edit.value])),
    unset: all.filter(([, edit]) => edit.unset).map(([key]) => key),
  };
}

/** Which of one's own changes are about something that another one changed, too, and not to the same. */
export function findConflicts(edits: SettingEdits, before: SettingValues, now: SettingValues): EditConflict[] {
  const found: EditConflict[] = [];
  for (const [key, yours] of edits) {
    const old = valueAt(before, key);
    const theirs = valueAt(now, key);
    const moved = !isSameValue(old.value, theirs.value) || old.from !== theirs.from;
    const agreed = yours.unset ? theirs.from === "default" : isSameValue(theirs.value, yours.value);
    if (moved && !agreed) found.push({ key, yours, before: old.value, theirs: theirs.value });
  }
  return found;
}

/** Changes that somebody else made just so: nothing is left to do for them. */
export function findSettledEdits(edits: SettingEdits, now: SettingValues): string[] {
  return [...edits].filter(([key, edit]) => !edit.problem && isSettled(edit, valueAt(now, key))).map(([key]) => key);
}

function isSettled(edit: SettingEdit, now: Pick<SettingValue, "value" | "from">): boolean {
  return edit.unset ? now.from === "default" : now.from !== "default" && isSameValue(now.value, edit.value);
}

/** One value, or all that stands below a key. */
function valueAt(values: SettingValues, key: string): Pick<SettingValue, "value" | "from"> {
  const own = values.get(key);
  if (own) return own;
  const below = [...values].filter(([each]) => each.startsWith(`${key}.`));
  if (!below.length) return { value: null, from: "default" };
  return { value: Object.fromEntries(below.map(([each, value]) => [each.slice(key.length + 1), value.value])), from: below[0]?.[1].from ?? "" };
}
