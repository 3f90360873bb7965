// @vitest-environment node
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { appendTextFiles, type Attachment, detectMediaType, encodeAttachments, encodeBase64, explainNoRoom, formatFileSize, MAX_ATTACHMENTS, MAX_PICTURE_BYTES, readAttachment } from "./attachments";

const PNG = [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10];

async function taken(file: File): Promise<Attachment> {
  const made = await readAttachment(file);
  if (typeof made === "string") throw new Error(made);
  return made;
}

describe("attached", () => {
  it("knows files by what is in them, not by their names", async () => {
    expect((await taken(new File([new Uint8Array(PNG)], "a.txt"))).kind).toBe("picture");
    expect((await taken(new File(["%PDF-1.7"], "a.png"))).kind).toBe("pdf");
    expect(await taken(new File(["héllo"], "a.bin"))).toMatchObject({ kind: "text", text: "héllo" });
  });

  it("tells why not", async () => {
    expect(await readAttachment(new File([], "empty.png"))).toContain("empty");
    expect(await readAttachment(new File([new Uint8Array([0, 159, 146, 150])], "x.bin"))).toContain("neither a picture");
    expect(await readAttachment(new File([new Uint8Array(PNG), new Uint8Array(MAX_PICTURE_BYTES)], "big.png"))).toContain("too large");
    expect(await readAttachment(new File(["x".repeat(200_000)], "long.txt"))).toContain("100 kB");
  });
});

it("takes so many, and together so much", async () => {
  const one = await taken(new File(["x"], "a.txt"));
  expect(explainNoRoom([], one)).toBe("");
  expect(explainNoRoom(Array.from({ length: MAX_ATTACHMENTS }, () => one), one)).toContain(String(MAX_ATTACHMENTS));
  expect(explainNoRoom([{ ...one, bytes: 24_999_999 }], { ...one, bytes: 2 })).toContain("25 MB");
});

it("puts texts into the message, whatever fences they have", async () => {
  const file = await taken(new File(["```\ncode\n```\n"], "notes.md"));
  expect(appendTextFiles("Look:", [file])).toBe("Look:\n\nnotes.md:\n````\n```\ncode\n```\n````");
  expect(await encodeAttachments([file])).toEqual([]);
});

it("writes bytes in base64", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => void expect(encodeBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"))));
  expect(encodeBase64(new Uint8Array(100_000)).length).toBe(133_336);
});

it("knows pictures by their first bytes", () => {
  expect(detectMediaType(new Uint8Array([...Buffer.from("RIFFxxxxWEBP")]))).toBe("image/webp");
  expect(detectMediaType(new Uint8Array([...Buffer.from("GIF89a")]))).toBe("image/gif");
  expect(detectMediaType(new Uint8Array([0xff, 0xd8, 0xff, 0xe0]))).toBe("image/jpeg");
  expect(detectMediaType(new Uint8Array())).toBe("");
});

it("writes sizes as people do", () => {
  expect([999, 1500, 2_500_000, 20_000_000].map(formatFileSize)).toEqual(["999 B", "2 kB", "2.5 MB", "20 MB"]);
});
