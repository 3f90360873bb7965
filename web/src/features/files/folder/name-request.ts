/** What a name is asked for, and what is done with it. */

import { join, name, parent, whole } from "../file-paths";
import type { Store } from "../files-api";

export interface Making {
  what: "newFile" | "newFolder";
  folder: string;
}

export interface Carrying {
  what: "rename" | "move" | "copy";
  path: string;
}

export type Naming = Making | Carrying;

/** What stands in the box at first. */
export function begun(naming: Naming): string {
  if ("folder" in naming) return "";
  return naming.what === "rename" ? name(naming.path) : whole(naming.path);
}

/** How much of that is chosen: the name without its ending, as that is what one mostly changes. */
export function chosen(text: string): [number, number] {
  const from = text.lastIndexOf("/") + 1;
  const dot = text.lastIndexOf(".");
  return [from, dot > from ? dot : text.length];
}

/** The path that is meant. */
export function meant(naming: Naming, given: string): string {
  if ("folder" in naming) return join(naming.folder, given);
  return naming.what === "rename" ? join(parent(naming.path), given) : join("", given);
}

/** Does it; returns where it is now. */
export async function named(store: Store, naming: Naming, given: string, overwrite: boolean): Promise<string> {
  const to = meant(naming, given);
  if ("folder" in naming) return naming.what === "newFile" ? (await store.write(to, "", "")).value.path : (await store.folder(to)).path;
  return (await store.carry(naming.what === "copy" ? "copy" : "move", naming.path, to, overwrite)).path;
}
