/**
 * Paths in a workspace, as the server tells them: names with slashes between, or `base64:…` where they are no text.
 * All that takes one apart or puts one together works on its bytes, so that both kinds go the same way.
 */

import { line } from "../../text/escape-invisible";

const MARK = "base64:";
const SLASH = 47;

export interface Crumb {
  name: string;
  path: string;
}

export function parent(path: string): string {
  const bytes = bytesOf(path);
  return told(bytes.subarray(0, Math.max(0, bytes.lastIndexOf(SLASH))));
}

/** What something is called. */
export function name(path: string): string {
  const bytes = bytesOf(path);
  return new TextDecoder().decode(bytes.subarray(bytes.lastIndexOf(SLASH) + 1));
}

/** The whole path, as text. */
export function whole(path: string): string {
  return new TextDecoder().decode(bytesOf(path));
}

/** The name as people see it: on one line, and with nothing hidden in it. */
export function called(path: string): string {
  return line(name(path));
}

/** The whole path as people see it. */
export function shown(path: string): string {
  return line(whole(path));
}

/** A path below a folder. */
export function join(folder: string, below: string): string {
  const above = bytesOf(folder);
  const rest = new TextEncoder().encode(below);
  return above.length ? told(Uint8Array.of(...above, SLASH, ...rest)) : told(rest);
}

/** The folders on the way to a path and itself, the topmost first. */
export function crumbs(path: string): Crumb[] {
  const found: Crumb[] = [];
  for (let at = path; at; at = parent(at)) found.unshift({ name: name(at), path: at });
  return found;
}

/** Whether it is that folder, or something in it. */
export function within(path: string, folder: string): boolean {
  return !folder || whole(path) === whole(folder) || whole(path).startsWith(`${whole(folder)}/`);
}

/** What is wrong with a new name; empty where nothing is. */
export function wrong(given: string): "" | "empty" | "dots" | "nul" | "long" {
  const parts = given.split("/");
  if (!given.trim() || parts.some((part) => !part)) return "empty";
  if (parts.some((part) => part === "." || part === "..")) return "dots";
  if (given.includes("\0")) return "nul";
  return parts.some((part) => new TextEncoder().encode(part).length > 255) ? "long" : "";
}

/** Another name beside one that is taken: `a (2).txt`. */
export function beside(path: string, taken: (path: string) => boolean): string {
  const [, stem = "", ending = ""] = /^(.+?)((?:\.tar)?\.[^./]+)?$/s.exec(name(path)) ?? [];
  for (let count = 2; ; count++) {
    const other = join(parent(path), `${stem} (${count})${ending}`);
    if (!taken(other)) return other;
  }
}

/** What stands behind a workspace's id in the address. Browsers drop a part that is a mere dot: such a path goes as bytes. */
export function steps(path: string): string[] {
  return path.startsWith("./") ? [MARK + coded(bytesOf(path))] : path.split("/").filter(Boolean);
}

/** The path that an address tells. */
export function fromSteps(parts: readonly string[]): string {
  const path = parts.join("/");
  try {
    return told(bytesOf(path));
  } catch {
    return path;
  }
}

function bytesOf(path: string): Uint8Array {
  if (!path.startsWith(MARK)) return new TextEncoder().encode(path.replace(/^\.\//, ""));
  const letters = atob(path.slice(MARK.length).replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

function told(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith(MARK) ? `./${text}` : text;
  } catch {
    return MARK + coded(bytes);
  }
}

function coded(bytes: Uint8Array): string {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_");
}
