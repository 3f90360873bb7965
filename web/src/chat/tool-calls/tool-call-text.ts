/** A call in one line, and its arguments as a person reads them. */

import type { Call } from "../../log/session";
import { inJson, line, visible } from "../../text/escape-invisible";
import { words } from "../../words";

const TELLING = ["command", "path", "url", "query", "text", "code", "question", "title", "message"];
const LONGEST = 160;

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** The argument that tells most. */
export function brief(call: Pick<Call, "arguments">): string {
  const given = parsed(call.arguments);
  if (!given) return "";
  if (typeof given["pattern"] === "string" && given["pattern"]) return searched(given["pattern"], given["path"]);
  const named = TELLING.map((name) => given[name]).find((value) => typeof value === "string" && value);
  const any = named ?? Object.values(given).find((value) => typeof value === "string" && value);
  return typeof any === "string" ? first(any) : "";
}

/** What is looked for, and where, if that is not everywhere. */
function searched(pattern: string, path: unknown): string {
  return first(typeof path === "string" && !["", ".", "./"].includes(path) ? `${first(pattern)} ${words.call.inside} ${path}` : pattern);
}

function first(text: string): string {
  return line((text.split("\n")[0] ?? "").slice(0, LONGEST));
}

export interface Given {
  name: string;
  text: string;
  /** Whether it is shown as a block of its own. */
  long: boolean;
}

/** Arguments by name; what is no object is shown as it came. */
export function given(text: string): Given[] {
  const values = parsed(text);
  if (!values) return text.trim() && text.trim() !== "{}" ? [{ name: "", text: visible(text), long: true }] : [];
  return Object.entries(values).map(([name, value]) => {
    const shown = visible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
    return { name: line(name), text: shown, long: shown.includes("\n") || shown.length > 100 };
  });
}

/** What went wrong with a call, as far as its output does not tell it. */
export function untold({ state, trouble, output }: Pick<Call, "state" | "trouble" | "output">): { message: string; next: string[] } {
  if (!trouble || state === "refused") return { message: "", next: [] };
  return {
    message: output.includes(trouble.message) ? "" : trouble.message,
    next: (trouble.next ?? []).filter((next) => !output.includes(next)),
  };
}

/** As JSON with a line for each value: for whoever edits them. */
export function pretty(text: string): string {
  const values = parsed(text);
  return values ? inJson(JSON.stringify(values, null, 2)) : text;
}

/** The language a call's output or code is likely in, by the name of its file. */
export function languageOf(path: string): string {
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  const names: Record<string, string> = { py: "python", ts: "typescript", js: "javascript", sh: "bash", yml: "yaml", md: "markdown", rs: "rust", html: "xml", svelte: "xml" };
  return names[ending] ?? ending;
}
