import fc from "fast-check";
import { expect, it } from "vitest";

import { type SseMessage, SseParser } from "./sse-parser";

const STREAM = 'id: 1\nevent: asked\ndata: {"a":1}\n\n: beat\n\ndata: one\ndata: two\n\nid: 2;3\r\nevent: x\r\ndata: ü€😀\r\n\r\nevent: empty\n\n';
const MESSAGES: SseMessage[] = [
  { id: "1", event: "asked", data: '{"a":1}' },
  { id: null, event: "message", data: "one\ntwo" },
  { id: "2;3", event: "x", data: "ü€😀" },
];

it("reads messages, comments and ends of lines of every kind", () => {
  expect(new SseParser().push(STREAM)).toEqual(MESSAGES);
});

it("reads the same however the stream is cut", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 40, maxLength: 80 }), (sizes) => {
      const parser = new SseParser();
      const found: SseMessage[] = [];
      let at = 0;
      for (const size of [...sizes, STREAM.length]) {
        found.push(...parser.push(STREAM.slice(at, at + size)));
        at += size;
      }
      expect(found).toEqual(MESSAGES);
    }),
  );
});
