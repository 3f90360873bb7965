import { expect, it } from "vitest";

import { type Act, KEYS, Keyboard, type Pressed, takesLetters } from "./keys";

function press(key: string, more: Partial<Pressed> = {}): Pressed {
  return { key, ctrlKey: false, metaKey: false, altKey: false, isComposing: false, ...more };
}

it("knows single keys, chords and sequences", () => {
  const board = new Keyboard();
  const read = (event: Pressed, now = 0): Act | null => board.read(event, false, true, now);
  expect(read(press("?"))).toBe("help");
  expect(read(press("k", { ctrlKey: true }))).toBe("palette");
  expect(read(press("k", { metaKey: true }))).toBe("palette");
  expect(read(press("ArrowDown", { altKey: true }))).toBe("next");
  expect([read(press("g")), read(press("d"))]).toEqual([null, "dashboard"]);
  expect([read(press("g")), read(press("x")), read(press("d"))]).toEqual([null, null, null]);
  expect([read(press("g")), read(press("s"))]).toEqual([null, "settings"]);
  expect(read(press("s"))).toBe("search");
});

it("forgets the first key of a sequence after a while", () => {
  const board = new Keyboard();
  board.read(press("g"), false, true, 0);
  expect(board.read(press("d"), false, true, 5000)).toBeNull();
});

it("leaves letters alone where somebody types, or has switched them off", () => {
  const board = new Keyboard();
  expect(board.read(press("n"), true, true, 0)).toBeNull();
  expect(board.read(press("n"), false, false, 0)).toBeNull();
  expect(board.read(press("K", { ctrlKey: true }), true, false, 0)).toBe("palette");
  expect(board.read(press("n", { isComposing: true }), false, true, 0)).toBeNull();
});

it("has no two meanings for the same keys", () => {
  expect(new Set(KEYS.map((key) => key.keys.join(" "))).size).toBe(KEYS.length);
});

it("knows what takes letters", () => {
  const box = document.createElement("input");
  expect(takesLetters(box)).toBe(true);
  box.type = "checkbox";
  expect([takesLetters(box), takesLetters(document.createElement("textarea")), takesLetters(document.body)]).toEqual([false, true, false]);
});
