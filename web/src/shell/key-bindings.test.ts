import { expect, it } from "vitest";

import { eventTarget, KEY_BINDINGS, type KeyPress, KeyReader, type KeyTarget, takesLetters } from "./key-bindings";

function press(key: string, more: Partial<KeyPress> = {}): KeyPress {
  return { key, ctrlKey: false, metaKey: false, altKey: false, isComposing: false, ...more };
}

it("knows single keys, chords and sequences", () => {
  const board = new KeyReader();
  const read = (event: KeyPress, now = 0): KeyTarget | null => board.readKey(event, false, true, now);
  expect(read(press("?"))).toBe("help");
  expect(read(press("k", { ctrlKey: true }))).toBe("palette");
  expect(read(press("k", { metaKey: true }))).toBe("palette");
  expect(read(press("ArrowDown", { altKey: true }))).toBe("next");
  expect([read(press("g")), read(press("c"))]).toEqual([null, { page: "chat" }]);
  expect([read(press("g")), read(press("x")), read(press("c"))]).toEqual([null, null, null]);
  expect([read(press("g")), read(press("s"))]).toEqual([null, { page: "settings" }]);
  expect(read(press("s"))).toBe("search");
});

it("forgets the first key of a sequence after a while", () => {
  const board = new KeyReader();
  board.readKey(press("g"), false, true, 0);
  expect(board.readKey(press("c"), false, true, 5000)).toBeNull();
});

it("leaves letters alone where somebody types, or has switched them off", () => {
  const board = new KeyReader();
  expect(board.readKey(press("n"), true, true, 0)).toBeNull();
  expect(board.readKey(press("n"), false, false, 0)).toBeNull();
  expect(board.readKey(press("K", { ctrlKey: true }), true, false, 0)).toBe("palette");
  expect(board.readKey(press("n", { isComposing: true }), false, true, 0)).toBeNull();
});

it("has no two meanings for the same keys", () => {
  expect(new Set(KEY_BINDINGS.map((key) => key.keys.join(" "))).size).toBe(KEY_BINDINGS.length);
});

it("knows what takes letters", () => {
  const box = document.createElement("input");
  expect(takesLetters(box)).toBe(true);
  box.type = "checkbox";
  expect([takesLetters(box), takesLetters(document.createElement("textarea")), takesLetters(document.body)]).toEqual([false, true, false]);
});

it("knows a letter with Alt by its place where the sign is another", () => {
  const board = new KeyReader();
  const read = (event: KeyPress): KeyTarget | null => board.readKey(event, true, true, 0);
  expect(read(press("y", { altKey: true }))).toBe("yes");
  expect(read(press("¥", { altKey: true, code: "KeyY" }))).toBe("yes");
  // Where Y and Z have changed places, the letter counts.
  expect(read(press("z", { altKey: true, code: "KeyY" }))).toBeNull();
});

it("sees what is typed into behind a shadow root", () => {
  const host = document.createElement("div");
  const inner = document.createElement("textarea");
  host.attachShadow({ mode: "open" }).append(inner);
  document.body.append(host);
  let seen: EventTarget | null = null;
  document.addEventListener("keydown", (event) => (seen = eventTarget(event)), { once: true });
  inner.dispatchEvent(new KeyboardEvent("keydown", { key: "s", bubbles: true, composed: true }));
  expect(takesLetters(seen)).toBe(true);
  host.remove();
});
