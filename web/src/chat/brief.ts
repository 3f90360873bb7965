/** A call in one line, and its arguments as a person reads them. */

import type { Call } from "../log/session";
import { inJson, line, visible } from "../text/visible";

const TELLING = ["command", "path", "url", "query", "pattern", "text", "code", "question", "title", "message"];
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
  const named = TELLING.map((name) => given[name]).find((value) => typeof value === "string" && value);
  const any = named ?? Object.values(given).find((value) => typeof value === "string" && value);
  return typeof any === "string" ? line((any.split("\n")[0] ?? "").slice(0, LONGEST)) : "";
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
