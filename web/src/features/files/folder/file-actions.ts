/** What can be done with a file or a folder, as its menu lists it. */

import { pathOf, router } from "../../../state/router.svelte";
import { filesWords } from "../words";
import type { Item } from "./FileMenu.svelte";
import type { Carrying } from "./name-request";
import { whole } from "../file-paths";
import type { Entry, Store, Workspace } from "../files-api";

export interface Hands {
  store: Store;
  workspace: Workspace;
  /** Whether one may change files. */
  may: boolean;
  name(wish: Carrying): void;
  remove(entry: { path: string }): void;
  zip(path: string): void;
}

export type Target = Pick<Entry, "path" | "kind">;

export function actionsOf(hands: Hands): (target: Target) => Item[] {
  const { store, may } = hands;
  return ({ path, kind }) => {
    const named = (what: "rename" | "move" | "copy"): Item => ({ label: filesWords[what], go: () => hands.name({ what, path }) });
    const items: Item[] = [];
    if (kind === "folder") items.push({ label: filesWords.zip, go: () => hands.zip(path) });
    if (kind === "file") items.push({ label: filesWords.download, go: () => download(store.bytes(path)) });
    if (!may) return items;
    const asking = { label: filesWords.askAbout, go: () => router.go(question(hands.workspace, path)) };
    return [...items, asking, named("rename"), named("move"), named("copy"), { label: filesWords.remove, danger: true, go: () => hands.remove({ path }) }];
  };
}

/** The start page, with the workspace chosen and the path in the box. */
export function question(workspace: Workspace, path: string): string {
  const query = new URLSearchParams({ workspace: workspace.path, text: filesWords.question(whole(path)) });
  return `${pathOf("chat")}?${query}`;
}

function download(address: string): void {
  const link = document.createElement("a");
  [link.href, link.download] = [address, ""];
  link.click();
}
