import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { appUpdate, listAssets } from "./app-update.svelte";

const page = (name: string): string => `<html><head><script type="module" src="/assets/index-${name}.js"></script><link href="/assets/index-a.css"></head></html>`;

beforeEach(() => {
  appUpdate.available = false;
  document.head.innerHTML = '<link href="/assets/index-a.css"><script type="application/json" src="/assets/index-one.js"></script>';
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("knows a page by its parts, in any order", () => {
  expect(listAssets(page("one"))).toBe("/assets/index-a.css /assets/index-one.js");
  expect(listAssets("<p>nothing</p>")).toBe("");
});

it("finds another app, and only another", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(page("one"))));
  await appUpdate.checkServer();
  expect(appUpdate.available).toBe(false);
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(page("two"))));
  await appUpdate.checkServer();
  expect(appUpdate.available).toBe(true);
});

it("is no error where the server does not answer", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
  await appUpdate.checkServer();
  expect(appUpdate.available).toBe(false);
});

it("waits while something is unsaved, typed or open", () => {
  vi.useFakeTimers();
  const end = appUpdate.watchForCalm();
  vi.advanceTimersByTime(60_000);
  expect(appUpdate.canReload()).toBe(true);
  dispatchEvent(new Event("input"));
  expect(appUpdate.canReload()).toBe(false);
  vi.advanceTimersByTime(60_000);
  const hold = (event: Event): void => event.preventDefault();
  addEventListener("beforeunload", hold);
  expect(appUpdate.canReload()).toBe(false);
  removeEventListener("beforeunload", hold);
  expect(appUpdate.canReload()).toBe(true);
  end();
});
