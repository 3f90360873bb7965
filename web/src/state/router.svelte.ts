/** Where one is in the app: the address, as state. */

import { CHAT_PAGE, PAGES } from "../features/registry";

export interface Route {
  page: string;
  /** What follows the page's name in the address. */
  rest: string[];
  query: URLSearchParams;
  /** The address names no page. */
  unknown: boolean;
}

export function parseRoute(url: URL): Route {
  const [first = "", ...rest] = url.pathname.split("/").filter(Boolean).map(decodePart);
  const page = PAGES.find(({ route }) => route === first)?.route ?? CHAT_PAGE.route;
  return { page, rest: page === first ? rest : [], query: url.searchParams, unknown: first !== "" && page !== first };
}

/** An address typed by hand may be none. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function buildPath(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** Asked before one leaves; where it says true one stays, until it calls what it was given. */
export type LeaveGuard = (leave: () => void) => boolean;

class Router {
  route = $state.raw(parseRoute(new URL(location.href)));
  #guard: LeaveGuard | null = null;
  #here = location.href;

  constructor() {
    addEventListener("popstate", () => {
      const wanted = location.href;
      if (wanted === this.#here) return;
      const leave = (): void => this.#navigate(wanted, "push");
      // The address has changed already: it is put back while one stays.
      if (this.#guard?.(leave)) history.pushState(null, "", this.#here);
      else this.#readAddress();
    });
  }

  /** Lets somebody ask before one leaves: changes that are not saved. What it returns lets go. */
  guardLeaving(hold: LeaveGuard): () => void {
    this.#guard = hold;
    return () => {
      if (this.#guard === hold) this.#guard = null;
    };
  }

  go(path: string, how: "push" | "replace" = "push"): void {
    if (new URL(path, location.href).href !== this.#here && this.#guard?.(() => this.#navigate(path, how))) return;
    this.#navigate(path, how);
  }

  #navigate(path: string, how: "push" | "replace"): void {
    if (how === "push") history.pushState(null, "", path);
    else history.replaceState(null, "", path);
    this.#readAddress();
  }

  #readAddress(): void {
    this.#here = location.href;
    this.route = parseRoute(new URL(location.href));
  }
}

export const router = new Router();

/** Links of the app stay in the app; those that are meant for a new tab or elsewhere do not. */
export function followLink(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest("a");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
  const ours = PAGES.some(({ route }) => link.pathname === `/${route}` || link.pathname.startsWith(`/${route}/`));
  if (link.origin !== location.origin || !ours) return;
  event.preventDefault();
  router.go(link.pathname + link.search);
}
