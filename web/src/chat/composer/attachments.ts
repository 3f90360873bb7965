/** Files that go with a message: pictures and PDF documents as they are, text within the message. */

import { words } from "../../words";

export const MAX_ATTACHMENTS = 20;
export const MAX_PICTURE_BYTES = 5_000_000;
export const MAX_PDF_BYTES = 20_000_000;
export const MAX_TEXT_BYTES = 100_000;
export const MAX_TOTAL_BYTES = 25_000_000;
const PICTURE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export interface Attachment {
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

export interface EncodedAttachment {
  name: string;
  data: string;
}

/** A file ready to go with a message, or why it cannot. */
export async function readAttachment(file: File): Promise<Attachment | string> {
  const head = new Uint8Array(await file.slice(0, 16).arrayBuffer());
  const media = detectMediaType(head);
  const made = { id: crypto.randomUUID(), name: file.name || words.attach.pasted, bytes: file.size, file, text: "", url: "" };
  if (!file.size) return words.attach.empty(made.name);
  if (media === "application/pdf") {
    return file.size > MAX_PDF_BYTES ? words.attach.large(made.name, formatFileSize(MAX_PDF_BYTES)) : { ...made, media, kind: "pdf" };
  }
  if (PICTURE_TYPES.includes(media)) {
    return file.size > MAX_PICTURE_BYTES ? words.attach.large(made.name, formatFileSize(MAX_PICTURE_BYTES)) : { ...made, media, kind: "picture" };
  }
  if (file.size > MAX_TEXT_BYTES) return words.attach.large(made.name, formatFileSize(MAX_TEXT_BYTES));
  const text = decodeText(await file.arrayBuffer());
  return text === null ? words.attach.unknown(made.name) : { ...made, media: "text/plain", kind: "text", text };
}

/** Whether one more may go with those that are there; else why not. */
export function explainNoRoom(there: readonly Attachment[], more: Attachment): string {
  if (there.length >= MAX_ATTACHMENTS) return words.attach.many(MAX_ATTACHMENTS);
  const all = there.reduce((sum, one) => sum + one.bytes, more.bytes);
  return all > MAX_TOTAL_BYTES ? words.attach.together(formatFileSize(MAX_TOTAL_BYTES)) : "";
}

export function detectMediaType(head: Uint8Array): string {
  const startsWith = (bytes: number[], at = 0): boolean => bytes.every((byte, index) => head[at + index] === byte);
  if (startsWith([0x89, 0x50, 0x4e, 0x47])) return "image/png";
  if (startsWith([0xff, 0xd8, 0xff])) return "image/jpeg";
  if (startsWith([0x47, 0x49, 0x46, 0x38])) return "image/gif";
  if (startsWith([0x52, 0x49, 0x46, 0x46]) && startsWith([0x57, 0x45, 0x42, 0x50], 8)) return "image/webp";
  if (startsWith([0x25, 0x50, 0x44, 0x46, 0x2d])) return "application/pdf";
  return "";
}

function decodeText(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** What is said, with the texts that were attached. */
export function appendTextFiles(said: string, files: readonly Attachment[]): string {
  const blocks = files.filter((file) => file.kind === "text").map((file) => fenceText(file.name, file.text));
  return [said, ...blocks].filter(Boolean).join("\n\n");
}

function fenceText(name: string, text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

export async function encodeAttachments(files: readonly Attachment[]): Promise<EncodedAttachment[]> {
  const sent = files.filter((file) => file.kind !== "text");
  return await Promise.all(sent.map(async (file) => ({ name: file.name, data: encodeBase64(new Uint8Array(await file.file.arrayBuffer())) })));
}

export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

export function formatFileSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}
