/** What can be done with a file or a folder, as its menu lists it. */

import { buildPath, router } from "../../../state/router.svelte";
import { pathText } from "../file-paths";
import type { FilesApi, FolderEntry, Workspace } from "../files-api";
import { filesWords } from "../words";
import type { FileMenuItem } from "./FileMenu.svelte";
import type { MoveRequest } from "./name-request";

export interface FileActionContext {
  filesApi: FilesApi;
  workspace: Workspace;
  /** Whether one may change files. */
  may: boolean;
  name(request: MoveRequest): void;
  remove(entry: { path: string }): void;
  zip(path: string): void;
}

export type ActionTarget = Pick<FolderEntry, "path" | "kind">;

export function buildFileActions(hands: FileActionContext): (target: ActionTarget) => FileMenuItem[] {
  const { filesApi, may } = hands;
  return ({ path, kind }) => {
    const nameAction = (what: "rename" | "move" | "copy"): FileMenuItem => ({ label: filesWords[what], go: () => hands.name({ what, path }) });
    const items: FileMenuItem[] = [];
    if (kind === "folder") items.push({ label: filesWords.zip, go: () => hands.zip(path) });
    if (kind === "file") items.push({ label: filesWords.download, go: () => downloadFile(filesApi.downloadUrl(path)) });
    if (!may) return items;
    const asking = { label: filesWords.askAbout, go: () => router.go(questionPath(hands.workspace, path)) };
    return [...items, asking, nameAction("rename"), nameAction("move"), nameAction("copy"), { label: filesWords.remove, danger: true, go: () => hands.remove({ path }) }];
  };
}

/** The start page, with the workspace chosen and the path in the box. */
export function questionPath(workspace: Workspace, path: string): string {
  const query = new URLSearchParams({ workspace: workspace.path, text: filesWords.question(pathText(path)) });
  return `${buildPath("chat")}?${query}`;
}

function downloadFile(address: string): void {
  const link = document.createElement("a");
  [link.href, link.download] = [address, ""];
  link.click();
}
