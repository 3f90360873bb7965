import { afterEach, expect, it } from "vitest";

import { readPreference } from "./browser-storage";
import { theme, toThemeName } from "./theme.svelte";

afterEach(() => theme.set("system"));

it("is kept, and shown on the page", () => {
  theme.set("dark");
  expect([document.documentElement.dataset["theme"], readPreference("theme"), theme.value]).toEqual(["dark", "dark", "dark"]);
  theme.set("system");
  expect([document.documentElement.dataset["theme"], readPreference("theme"), theme.value]).toEqual([undefined, "", "system"]);
});

it("follows another tab", () => {
  dispatchEvent(new StorageEvent("storage", { key: "sylph-theme", newValue: "light" }));
  expect(theme.value).toBe("light");
  dispatchEvent(new StorageEvent("storage", { key: "sylph-theme", newValue: null }));
  expect(theme.value).toBe("system");
});

it("takes what it does not know for the system's", () => {
  expect(toThemeName("purple")).toBe("system");
});
