/** What a name is asked for, and what is done with it. */

import { fileName, joinPath, parentPath, pathText } from "../file-paths";
import type { FilesApi } from "../files-api";

export interface CreateRequest {
  what: "newFile" | "newFolder";
  folder: string;
}

export interface MoveRequest {
  what: "rename" | "move" | "copy";
  path: string;
}

export type NameRequest = CreateRequest | MoveRequest;

/** What stands in the box at first. */
export function suggestName(naming: NameRequest): string {
  if ("folder" in naming) return "";
  return naming.what === "rename" ? fileName(naming.path) : pathText(naming.path);
}

/** How much of that is chosen: the name without its ending, as that is what one mostly changes. */
export function nameSelection(text: string): [number, number] {
  const from = text.lastIndexOf("/") + 1;
  const dot = text.lastIndexOf(".");
  return [from, dot > from ? dot : text.length];
}

/** The path that is meant. */
export function targetPath(naming: NameRequest, given: string): string {
  if ("folder" in naming) return joinPath(naming.folder, given);
  return naming.what === "rename" ? joinPath(parentPath(naming.path), given) : joinPath("", given);
}

/** Does it; returns where it is now. */
export async function applyName(filesApi: FilesApi, naming: NameRequest, given: string, overwrite: boolean): Promise<string> {
  const to = targetPath(naming, given);
  if ("folder" in naming) return naming.what === "newFile" ? (await filesApi.writeText(to, "", "")).value.path : (await filesApi.createFolder(to)).path;
  return (await filesApi.moveOrCopy(naming.what === "copy" ? "copy" : "move", naming.path, to, overwrite)).path;
}
