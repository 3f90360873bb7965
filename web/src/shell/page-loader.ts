/** The code of pages: loaded when one is first opened. */

import type { Feature, PageModule } from "../features/registry";

const loaded = new Map<string, Promise<PageModule>>();

export function loadPage({ name, load }: Feature): Promise<PageModule> {
  const known = loaded.get(name);
  if (known) return known;
  const coming = load();
  loaded.set(name, coming);
  // What could not be loaded may be, the next time.
  coming.catch(() => loaded.delete(name));
  return coming;
}
