/**
 * Paths in a workspace, as the server tells them: names with slashes between, or `base64:…` where they are no text.
 * All that takes one apart or puts one together works on its bytes, so that both kinds go the same way.
 */

import { escapeToLine } from "../../text/escape-invisible";

const BASE64_MARK = "base64:";
const SLASH = 47;

export interface Breadcrumb {
  name: string;
  path: string;
}

export function parentPath(path: string): string {
  const bytes = bytesOf(path);
  return pathFromBytes(bytes.subarray(0, Math.max(0, bytes.lastIndexOf(SLASH))));
}

/** What something is called. */
export function fileName(path: string): string {
  const bytes = bytesOf(path);
  return new TextDecoder().decode(bytes.subarray(bytes.lastIndexOf(SLASH) + 1));
}

/** The whole path, as text. */
export function pathText(path: string): string {
  return new TextDecoder().decode(bytesOf(path));
}

/** The name as people see it: on one line, and with nothing hidden in it. */
export function displayName(path: string): string {
  return escapeToLine(fileName(path));
}

/** The whole path as people see it. */
export function displayPath(path: string): string {
  return escapeToLine(pathText(path));
}

/** A path below a folder. */
export function joinPath(folder: string, below: string): string {
  const above = bytesOf(folder);
  const rest = new TextEncoder().encode(below);
  return above.length ? pathFromBytes(Uint8Array.of(...above, SLASH, ...rest)) : pathFromBytes(rest);
}

/** The folders on the way to a path and itself, the topmost first. */
export function listBreadcrumbs(path: string): Breadcrumb[] {
  const found: Breadcrumb[] = [];
  for (let at = path; at; at = parentPath(at)) found.unshift({ name: fileName(at), path: at });
  return found;
}

/** Whether it is that folder, or something in it. */
export function isWithin(path: string, folder: string): boolean {
  return !folder || pathText(path) === pathText(folder) || pathText(path).startsWith(`${pathText(folder)}/`);
}

/** What is wrong with a new name; empty where nothing is. */
export function findNameFault(given: string): "" | "empty" | "dots" | "nul" | "long" {
  const parts = given.split("/");
  if (!given.trim() || parts.some((part) => !part)) return "empty";
  if (parts.some((part) => part === "." || part === "..")) return "dots";
  if (given.includes("\0")) return "nul";
  return parts.some((part) => new TextEncoder().encode(part).length > 255) ? "long" : "";
}

/** Another name beside one that is taken: `a (2).txt`. */
export function findFreeName(path: string, taken: (path: string) => boolean): string {
  const [, stem = "", ending = ""] = /^(.+?)((?:\.tar)?\.[^./]+)?$/s.exec(fileName(path)) ?? [];
  for (let count = 2; ; count++) {
    const other = joinPath(parentPath(path), `${stem} (${count})${ending}`);
    if (!taken(other)) return other;
  }
}

/** What stands behind a workspace's id in the address. Browsers drop a part that is a mere dot: such a path goes as bytes. */
export function pathToSegments(path: string): string[] {
  return path.startsWith("./") ? [BASE64_MARK + encodeUrlBase64(bytesOf(path))] : path.split("/").filter(Boolean);
}

/** The path that an address tells. */
export function segmentsToPath(parts: readonly string[]): string {
  const path = parts.join("/");
  try {
    return pathFromBytes(bytesOf(path));
  } catch {
    return path;
  }
}

function bytesOf(path: string): Uint8Array {
  if (!path.startsWith(BASE64_MARK)) return new TextEncoder().encode(path.replace(/^\.\//, ""));
  const letters = atob(path.slice(BASE64_MARK.length).replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

function pathFromBytes(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith(BASE64_MARK) ? `./${text}` : text;
  } catch {
    return BASE64_MARK + encodeUrlBase64(bytes);
  }
}

function encodeUrlBase64(bytes: Uint8Array): string {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_");
}
