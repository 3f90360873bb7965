/** Files that go with a message: pictures and PDF documents as they are, text within the message. */

import { words } from "../../words";

export const MOST = 20;
export const PICTURE_BYTES = 5_000_000;
export const PDF_BYTES = 20_000_000;
export const TEXT_BYTES = 100_000;
export const ALL_BYTES = 25_000_000;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export interface Attached {
  id: string;
  name: string;
  media: string;
  bytes: number;
  kind: "picture" | "pdf" | "text";
  file: Blob;
  /** What it says, of a text. */
  text: string;
  /** Where a picture can be seen from. */
  url: string;
}

export interface Sent {
  name: string;
  data: string;
}

/** A file ready to go with a message, or why it cannot. */
export async function attached(file: File): Promise<Attached | string> {
  const head = new Uint8Array(await file.slice(0, 16).arrayBuffer());
  const media = mediaOf(head);
  const made = { id: crypto.randomUUID(), name: file.name || words.attach.pasted, bytes: file.size, file, text: "", url: "" };
  if (!file.size) return words.attach.empty(made.name);
  if (media === "application/pdf") {
    return file.size > PDF_BYTES ? words.attach.large(made.name, size(PDF_BYTES)) : { ...made, media, kind: "pdf" };
  }
  if (PICTURES.includes(media)) {
    return file.size > PICTURE_BYTES ? words.attach.large(made.name, size(PICTURE_BYTES)) : { ...made, media, kind: "picture" };
  }
  if (file.size > TEXT_BYTES) return words.attach.large(made.name, size(TEXT_BYTES));
  const text = textOf(await file.arrayBuffer());
  return text === null ? words.attach.unknown(made.name) : { ...made, media: "text/plain", kind: "text", text };
}

/** Whether one more may go with those that are there; else why not. */
export function room(there: readonly Attached[], more: Attached): string {
  if (there.length >= MOST) return words.attach.many(MOST);
  const all = there.reduce((sum, one) => sum + one.bytes, more.bytes);
  return all > ALL_BYTES ? words.attach.together(size(ALL_BYTES)) : "";
}

export function mediaOf(head: Uint8Array): string {
  const begins = (bytes: number[], at = 0): boolean => bytes.every((byte, index) => head[at + index] === byte);
  if (begins([0x89, 0x50, 0x4e, 0x47])) return "image/png";
  if (begins([0xff, 0xd8, 0xff])) return "image/jpeg";
  if (begins([0x47, 0x49, 0x46, 0x38])) return "image/gif";
  if (begins([0x52, 0x49, 0x46, 0x46]) && begins([0x57, 0x45, 0x42, 0x50], 8)) return "image/webp";
  if (begins([0x25, 0x50, 0x44, 0x46, 0x2d])) return "application/pdf";
  return "";
}

function textOf(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** What is said, with the texts that were attached. */
export function withTexts(said: string, files: readonly Attached[]): string {
  const blocks = files.filter((file) => file.kind === "text").map((file) => block(file.name, file.text));
  return [said, ...blocks].filter(Boolean).join("\n\n");
}

function block(name: string, text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

export async function encoded(files: readonly Attached[]): Promise<Sent[]> {
  const sent = files.filter((file) => file.kind !== "text");
  return await Promise.all(sent.map(async (file) => ({ name: file.name, data: base64(new Uint8Array(await file.file.arrayBuffer())) })));
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}
