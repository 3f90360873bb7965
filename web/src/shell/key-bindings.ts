/** Keys of the whole app. One letter counts only where nothing is typed, and can be switched off. */

import { PAGES } from "../features/registry";
import { words } from "../words";

export type AppAction = keyof typeof words.keys.acts;

/** What keys mean: one of the acts of the app, or a page to go to. */
export type KeyTarget = AppAction | { page: string };

export interface KeyBinding {
  target: KeyTarget;
  help: string;
  /** As they are shown: the keys of a sequence one after another. */
  keys: string[];
  /** Whether it is a bare letter or sign. */
  bare: boolean;
}

const APP_BINDINGS: { target: AppAction; keys: string[]; bare: boolean }[] = [
  { target: "palette", keys: ["Ctrl+K"], bare: false },
  { target: "next", keys: ["Alt+ArrowDown"], bare: false },
  { target: "previous", keys: ["Alt+ArrowUp"], bare: false },
  { target: "sidebar", keys: ["Ctrl+B"], bare: false },
  { target: "yes", keys: ["Alt+Y"], bare: false },
  { target: "no", keys: ["Alt+N"], bare: false },
  { target: "question", keys: ["Alt+Q"], bare: false },
  { target: "help", keys: ["?"], bare: true },
  { target: "new", keys: ["n"], bare: true },
  { target: "search", keys: ["s"], bare: true },
];

export const KEY_BINDINGS: KeyBinding[] = [
  ...APP_BINDINGS.map((key) => ({ ...key, help: words.keys.acts[key.target] })),
  ...PAGES.flatMap(({ route, shortcut }) => (shortcut ? [{ target: { page: route }, keys: shortcut.keys, help: shortcut.help, bare: true }] : [])),
];

export function isAppAction(target: KeyTarget): target is AppAction {
  return typeof target === "string";
}

/** So long a sequence may take. */
const SEQUENCE_MS = 1500;

export interface KeyPress {
  key: string;
  /** Where the key is; a Mac tells another sign than the letter while Alt is down. */
  code?: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  isComposing: boolean;
}

/** Reads keys one by one; says what is meant once it is clear. */
export class KeyReader {
  #firstKey = "";
  #firstKeyAt = 0;

  readKey(event: KeyPress, typing: boolean, bare: boolean, now: number): KeyTarget | null {
    if (event.isComposing) return null;
    const name = nameKey(event);
    const plain = !name.includes("+") || name === "+";
    if (!plain) {
      this.#firstKey = "";
      return KEY_BINDINGS.find((key) => !key.bare && key.keys[0] === name)?.target ?? null;
    }
    if (typing || !bare) {
      this.#firstKey = "";
      return null;
    }
    const before = now - this.#firstKeyAt < SEQUENCE_MS ? this.#firstKey : "";
    this.#firstKey = "";
    const whole = KEY_BINDINGS.find((key) => key.bare && (before ? key.keys.length === 2 && key.keys[0] === before : key.keys.length === 1) && key.keys.at(-1) === name);
    if (whole) return whole.target;
    if (KEY_BINDINGS.some((key) => key.bare && key.keys.length === 2 && key.keys[0] === name)) {
      this.#firstKey = name;
      this.#firstKeyAt = now;
    }
    return null;
  }
}

function nameKey(event: KeyPress): string {
  // On a Mac the command key does what Ctrl does elsewhere.
  const parts = [event.ctrlKey || event.metaKey ? "Ctrl" : "", event.altKey ? "Alt" : ""].filter(Boolean);
  const plain = event.altKey && !/^[a-z]$/i.test(event.key) ? /^Key([A-Z])$/.exec(event.code ?? "")?.[1] : undefined;
  const key = plain ?? (event.key.length === 1 && parts.length ? event.key.toUpperCase() : event.key);
  return [...parts, key].join("+");
}

/** What is typed into: in a shadow root it is deeper than the page is told. */
export function eventTarget(event: Event): EventTarget | null {
  return event.composedPath()[0] ?? event.target;
}

/** Whether what has the focus takes letters itself. */
export function takesLetters(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range", "submit", "file", "color"].includes(target.type);
}

/** A key as it is called on this machine. */
export function formatKey(key: string): string {
  const named = key.replace("ArrowDown", "↓").replace("ArrowUp", "↑");
  return /Mac|iPhone|iPad/.test(navigator.userAgent) ? named.replace("Ctrl+", "⌘").replace("Alt+", "⌥") : named;
}
