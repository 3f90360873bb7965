/** A call in one line, and its arguments as a person reads them. */

import type { ToolCall } from "../../log/session";
import { escapeInJson, escapeInvisible, escapeToLine } from "../../text/escape-invisible";
import { words } from "../../words";

const TELLING_ARGUMENTS = ["command", "path", "url", "query", "text", "code", "question", "title", "message"];
const MAX_SUMMARY_LENGTH = 160;

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** The argument that tells most. */
export function summarizeCall(call: Pick<ToolCall, "arguments">): string {
  const given = parseObject(call.arguments);
  if (!given) return "";
  if (typeof given["pattern"] === "string" && given["pattern"]) return summarizeSearch(given["pattern"], given["path"]);
  const named = TELLING_ARGUMENTS.map((name) => given[name]).find((value) => typeof value === "string" && value);
  const any = named ?? Object.values(given).find((value) => typeof value === "string" && value);
  return typeof any === "string" ? firstLine(any) : "";
}

/** What is looked for, and where, if that is not everywhere. */
function summarizeSearch(pattern: string, path: unknown): string {
  return firstLine(typeof path === "string" && !["", ".", "./"].includes(path) ? `${firstLine(pattern)} ${words.call.inside} ${path}` : pattern);
}

function firstLine(text: string): string {
  return escapeToLine((text.split("\n")[0] ?? "").slice(0, MAX_SUMMARY_LENGTH));
}

export interface ArgumentText {
  name: string;
  text: string;
  /** Whether it is shown as a block of its own. */
  long: boolean;
}

/** Arguments by name; what is no object is shown as it came. */
export function listArguments(text: string): ArgumentText[] {
  const values = parseObject(text);
  if (!values) return text.trim() && text.trim() !== "{}" ? [{ name: "", text: escapeInvisible(text), long: true }] : [];
  return Object.entries(values).map(([name, value]) => {
    const shown = escapeInvisible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
    return { name: escapeToLine(name), text: shown, long: shown.includes("\n") || shown.length > 100 };
  });
}

/** What went wrong with a call, as far as its output does not tell it. */
export function findUntoldTrouble({ state, trouble, output }: Pick<ToolCall, "state" | "trouble" | "output">): { message: string; next: string[] } {
  if (!trouble || state === "refused") return { message: "", next: [] };
  return {
    message: output.includes(trouble.message) ? "" : trouble.message,
    next: (trouble.next ?? []).filter((next) => !output.includes(next)),
  };
}

/** As JSON with a line for each value: for whoever edits them. */
export function formatArguments(text: string): string {
  const values = parseObject(text);
  return values ? escapeInJson(JSON.stringify(values, null, 2)) : text;
}

/** The language a call's output or code is likely in, by the name of its file. */
export function guessLanguage(path: string): string {
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  const names: Record<string, string> = { py: "python", ts: "typescript", js: "javascript", sh: "bash", yml: "yaml", md: "markdown", rs: "rust", html: "xml", svelte: "xml" };
  return names[ending] ?? ending;
}
