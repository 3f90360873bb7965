import { readdirSync } from "node:fs";

import { expect, it } from "vitest";

import { FEATURES, findFeature, isPagePath, PAGES, showsSession } from "./registry";

it("lists every feature once, under an address of its own", () => {
  expect(new Set(FEATURES.map(({ name }) => name)).size).toBe(FEATURES.length);
  expect(new Set([...PAGES, ...FEATURES].map(({ route }) => route)).size).toBe(new Set([...PAGES, ...FEATURES]).size);
  const folders = readdirSync(import.meta.dirname, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).filter((name) => !FEATURES.some((feature) => feature.name === name))).toEqual([]);
});

it("tells which addresses lead somewhere", () => {
  expect(["/chat", "/chat/abc?at=3", "/nowhere", "/"].map(isPagePath)).toEqual([true, true, false, false]);
  expect(["/settings/config/limits", "/settings/nowhere"].map(isPagePath)).toEqual([findFeature("settings/config") !== undefined, false]);
  expect([showsSession("chat"), showsSession("settings"), showsSession("nowhere")]).toEqual([true, false, false]);
});
