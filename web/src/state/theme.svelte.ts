/** Light, dark, or as the system has it: kept in this browser, and the same in all its tabs. */

import { readPreference, savePreference } from "./browser-storage";

export const THEMES = ["system", "light", "dark"] as const;
export type ThemeName = (typeof THEMES)[number];

const PAGE_COLORS = { light: "#f7f7f4", dark: "#16181c" };

class ThemeChoice {
  value = $state<ThemeName>("system");

  constructor() {
    this.#applyTheme(toThemeName(readPreference("theme")));
    window.addEventListener("storage", (event) => event.key === "sylph-theme" && this.#applyTheme(toThemeName(event.newValue ?? "")));
  }

  set(theme: ThemeName): void {
    savePreference("theme", theme === "system" ? "" : theme);
    this.#applyTheme(theme);
  }

  #applyTheme(theme: ThemeName): void {
    this.value = theme;
    const root = document.documentElement;
    if (theme === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme;
    for (const one of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
      one.content = PAGE_COLORS[theme === "system" ? (one.media.includes("dark") ? "dark" : "light") : theme];
    }
  }
}

export function toThemeName(name: string): ThemeName {
  return THEMES.find((theme) => theme === name) ?? "system";
}

export const theme = new ThemeChoice();
