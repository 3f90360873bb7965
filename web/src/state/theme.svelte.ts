/** Light, dark, or as the system has it: kept in this browser, and the same in all its tabs. */

import { keep, kept } from "./browser-storage";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const PAPER = { light: "#f7f7f4", dark: "#16181c" };

class Choice {
  value = $state<Theme>("system");

  constructor() {
    this.#show(known(kept("theme")));
    window.addEventListener("storage", (event) => event.key === "sylph-theme" && this.#show(known(event.newValue ?? "")));
  }

  set(theme: Theme): void {
    keep("theme", theme === "system" ? "" : theme);
    this.#show(theme);
  }

  #show(theme: Theme): void {
    this.value = theme;
    const root = document.documentElement;
    if (theme === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme;
    for (const one of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
      one.content = PAPER[theme === "system" ? (one.media.includes("dark") ? "dark" : "light") : theme];
    }
  }
}

export function known(name: string): Theme {
  return THEMES.find((theme) => theme === name) ?? "system";
}

export const theme = new Choice();
