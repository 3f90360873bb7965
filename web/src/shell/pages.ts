/** The pages there are: each is loaded when it is first opened, and has its place in the navigation once it exists. */

import type { Component } from "svelte";

import { type PageName, PAGES } from "../router.svelte";

type Loaded = { default: Component<{ id?: string }> };

const found = import.meta.glob<Loaded>("../pages/{Timeline,Dashboard,Files,Settings}Page.svelte");
const PARTS = Object.fromEntries(
  Object.entries(found).map(([path, load]) => [path.replace(/^.*\/(\w+)Page\.svelte$/, "$1").toLowerCase(), load]),
) as Partial<Record<PageName, () => Promise<Loaded>>>;

/** The chat is part of the app itself. */
export const THERE: PageName[] = PAGES.filter((page) => page === "chat" || page in PARTS);

const loaded = new Map<PageName, Promise<Loaded>>();

export function load(page: PageName): Promise<Loaded> {
  const known = loaded.get(page);
  if (known) return known;
  const coming = (PARTS[page] ?? (() => Promise.reject(new Error(`There is no page ${page}.`))))();
  loaded.set(page, coming);
  // What could not be loaded may be, the next time.
  coming.catch(() => loaded.delete(page));
  return coming;
}
