/** Values of fields: read from what somebody typed, checked, and shown. */

import type { ConfigField, FieldKind } from "./config-schema";
import { configWords } from "./words";

const say = configWords;

/** What is wrong with a value; empty where nothing is. */
export function explainInvalid(kind: FieldKind, value: unknown): string {
  switch (kind.is) {
    case "flag":
      return typeof value === "boolean" ? "" : say.wrong.flag;
    case "choice":
      return kind.of.includes(String(value)) ? "" : say.wrong.choice(kind.of.filter(Boolean).join(", "));
    case "number":
      return explainInvalidNumber(kind, value);
    case "text":
      return explainInvalidText(kind, value);
    case "list":
      return Array.isArray(value) ? firstProblem(value.map((each) => explainInvalid(kind.of, each))) : say.wrong.list;
    case "rows":
      return Array.isArray(value) ? firstProblem(value.map((each) => explainInvalidRow(kind.columns, each))) : say.wrong.list;
  }
}

function firstProblem(found: string[]): string {
  const at = found.findIndex(Boolean);
  return at < 0 ? "" : say.wrong.at(at + 1, found[at] ?? "");
}

function explainInvalidNumber(kind: FieldKind & { is: "number" }, value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return say.wrong.number;
  if (kind.whole && !Number.isSafeInteger(value)) return say.wrong.whole;
  if (kind.least !== undefined && value < kind.least) return say.wrong.least(kind.least);
  if (kind.above !== undefined && value <= kind.above) return say.wrong.above(kind.above);
  if (kind.most !== undefined && value > kind.most) return say.wrong.most(kind.most);
  if (kind.below !== undefined && value >= kind.below) return say.wrong.below(kind.below);
  return "";
}

function explainInvalidText(kind: FieldKind & { is: "text" }, value: unknown): string {
  if (typeof value !== "string") return say.wrong.text;
  if (value.length < kind.shortest) return say.wrong.shortest(kind.shortest);
  if (value.length > kind.longest) return say.wrong.longest(kind.longest);
  return kind.pattern && !new RegExp(kind.pattern, "u").test(value) ? say.wrong.pattern(kind.pattern) : "";
}

function explainInvalidRow(columns: ConfigField[], row: unknown): string {
  if (typeof row !== "object" || row === null) return say.wrong.list;
  const values = row as Record<string, unknown>;
  for (const column of columns) {
    const value = values[column.key];
    const said = value === undefined ? (column.needed ? say.wrong.missing : "") : explainInvalid(column.kind, value);
    if (said) return `${column.label}: ${said}`;
  }
  return "";
}

export interface ParsedValue {
  value: unknown;
  problem: string;
}

/** What somebody typed, as a value of the kind. An empty number is no value: null. */
export function parseValue(kind: FieldKind, text: string): ParsedValue {
  if (kind.is === "number") {
    if (!text.trim()) return { value: null, problem: "" };
    const value = /^[-+]?[\d.]+(?:e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : NaN;
    return { value, problem: explainInvalid(kind, value) };
  }
  if (kind.is === "list") {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    const found = lines.map((line) => parseValue(kind.of, line));
    const value = found.map((each) => each.value);
    return { value, problem: firstProblem(found.map((each) => each.problem)) };
  }
  return { value: text, problem: explainInvalid(kind, text) };
}

/** A value as it stands in a field that is typed into. */
export function toInputText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(String).join("\n") : String(value);
}

/** A value as it is told in a sentence. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === "") return say.nothing;
  if (typeof value === "boolean") return value ? say.on : say.off;
  if (!Array.isArray(value)) return typeof value === "object" ? JSON.stringify(value) : String(value);
  if (!value.length) return say.none;
  return value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ");
}

export function isSameValue(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}
