/** Values of fields: read from what somebody typed, checked, and shown. */

import { configWords } from "./words";
import type { Field, Kind } from "./config-schema";

const say = configWords;

/** What is wrong with a value; empty where nothing is. */
export function wrong(kind: Kind, value: unknown): string {
  switch (kind.is) {
    case "flag":
      return typeof value === "boolean" ? "" : say.wrong.flag;
    case "choice":
      return kind.of.includes(String(value)) ? "" : say.wrong.choice(kind.of.filter(Boolean).join(", "));
    case "number":
      return wrongNumber(kind, value);
    case "text":
      return wrongText(kind, value);
    case "list":
      return Array.isArray(value) ? firstOf(value.map((each) => wrong(kind.of, each))) : say.wrong.list;
    case "rows":
      return Array.isArray(value) ? firstOf(value.map((each) => wrongRow(kind.columns, each))) : say.wrong.list;
  }
}

function firstOf(found: string[]): string {
  const at = found.findIndex(Boolean);
  return at < 0 ? "" : say.wrong.at(at + 1, found[at] ?? "");
}

function wrongNumber(kind: Kind & { is: "number" }, value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return say.wrong.number;
  if (kind.whole && !Number.isSafeInteger(value)) return say.wrong.whole;
  if (kind.least !== undefined && value < kind.least) return say.wrong.least(kind.least);
  if (kind.above !== undefined && value <= kind.above) return say.wrong.above(kind.above);
  if (kind.most !== undefined && value > kind.most) return say.wrong.most(kind.most);
  if (kind.below !== undefined && value >= kind.below) return say.wrong.below(kind.below);
  return "";
}

function wrongText(kind: Kind & { is: "text" }, value: unknown): string {
  if (typeof value !== "string") return say.wrong.text;
  if (value.length < kind.shortest) return say.wrong.shortest(kind.shortest);
  if (value.length > kind.longest) return say.wrong.longest(kind.longest);
  return kind.pattern && !new RegExp(kind.pattern, "u").test(value) ? say.wrong.pattern(kind.pattern) : "";
}

function wrongRow(columns: Field[], row: unknown): string {
  if (typeof row !== "object" || row === null) return say.wrong.list;
  const values = row as Record<string, unknown>;
  for (const column of columns) {
    const value = values[column.key];
    const said = value === undefined ? (column.needed ? say.wrong.missing : "") : wrong(column.kind, value);
    if (said) return `${column.label}: ${said}`;
  }
  return "";
}

export interface Read {
  value: unknown;
  problem: string;
}

/** What somebody typed, as a value of the kind. An empty number is no value: null. */
export function read(kind: Kind, text: string): Read {
  if (kind.is === "number") {
    if (!text.trim()) return { value: null, problem: "" };
    const value = /^[-+]?[\d.]+(?:e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : NaN;
    return { value, problem: wrong(kind, value) };
  }
  if (kind.is === "list") {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    const found = lines.map((line) => read(kind.of, line));
    const value = found.map((each) => each.value);
    return { value, problem: firstOf(found.map((each) => each.problem)) };
  }
  return { value: text, problem: wrong(kind, text) };
}

/** A value as it stands in a field that is typed into. */
export function typed(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(String).join("\n") : String(value);
}

/** A value as it is told in a sentence. */
export function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return say.nothing;
  if (typeof value === "boolean") return value ? say.on : say.off;
  if (!Array.isArray(value)) return typeof value === "object" ? JSON.stringify(value) : String(value);
  if (!value.length) return say.none;
  return value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ");
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}
