/** The files of a workspace: every request that the page makes. */

import { apiPath, getJson, postJson, Problem, requestJson, sendDelete, sendRequest, type TaggedAnswer } from "../../net/api";

export interface Workspace {
  id: string;
  path: string;
  name: string;
  origin: "server" | "added" | "session";
  there: boolean;
  git: boolean;
}

export type EntryKind = "folder" | "file" | "link" | "other";

export interface FolderEntry {
  name: string;
  path: string;
  kind: EntryKind;
  size: number;
  modified: number;
  hidden: boolean;
  ignored: boolean;
  protected: boolean;
  to: string | null;
  to_kind: EntryKind | null;
}

export interface FileView {
  name: string;
  path: string;
  size: number;
  modified: number;
  mode: string;
  media: string;
  text: string | null;
  encoding: string | null;
  line_ends: "lf" | "crlf" | "mixed" | "none" | null;
}

export interface WriteResult {
  path: string;
  size: number;
  modified: number;
  created: boolean;
}

export interface TrashEntry {
  id: string;
  path: string;
  kind: EntryKind;
  size: number;
  deleted: number;
  session: string | null;
  by: string | null;
}

export interface SearchHit {
  path: string;
  line: number | null;
  text: string | null;
}

export interface FileSearchResult {
  items: SearchHit[];
  cut: boolean;
  note: string | null;
}

export interface FilePage<T> {
  items: T[];
  next: string | null;
}

export const FILES_PER_PAGE = 200;

export async function listWorkspaces(): Promise<Workspace[]> {
  return (await getJson<FilePage<Workspace>>("workspaces")).items;
}

/** The files of one workspace. */
export class FilesApi {
  constructor(readonly workspaceId: string) {}

  listFolder(path: string, cursor = "", limit = FILES_PER_PAGE): Promise<FilePage<FolderEntry>> {
    return getJson(apiPath`workspaces/${this.workspaceId}/files?path=${path}&cursor=${cursor}&limit=${limit}`);
  }

  readText(path: string): Promise<TaggedAnswer<FileView>> {
    return requestJson(apiPath`workspaces/${this.workspaceId}/files/text?path=${path}`);
  }

  /** The file as it is now; null where it is still the version that is known. */
  async readTextIfChanged(path: string, etag: string): Promise<TaggedAnswer<FileView> | null> {
    const response = await sendRequest(apiPath`workspaces/${this.workspaceId}/files/text?path=${path}`, { ifNoneMatch: etag });
    if (response.status === 304) return null;
    return { value: (await response.json()) as FileView, etag: response.headers.get("etag") ?? "" };
  }

  /** Writes over the version with this tag; without one, only where nothing is. */
  writeText(path: string, text: string, etag: string): Promise<TaggedAnswer<WriteResult>> {
    const options = { method: "PUT", body: { text }, ...(etag ? { ifMatch: etag } : { ifNoneMatch: "*" }) };
    return requestJson(apiPath`workspaces/${this.workspaceId}/files/text?path=${path}`, options);
  }

  createFolder(path: string): Promise<FolderEntry> {
    return postJson(apiPath`workspaces/${this.workspaceId}/files/folder`, { path });
  }

  moveOrCopy(how: "move" | "copy", path: string, to: string, overwrite = false): Promise<FolderEntry> {
    return postJson(apiPath`workspaces/${this.workspaceId}/files/${how}`, { path, to, overwrite });
  }

  async moveToTrash(path: string): Promise<TrashEntry> {
    return (await requestJson<TrashEntry>(apiPath`workspaces/${this.workspaceId}/files?path=${path}`, { method: "DELETE" })).value;
  }

  listTrash(cursor = ""): Promise<FilePage<TrashEntry>> {
    return getJson(apiPath`workspaces/${this.workspaceId}/trash?limit=${FILES_PER_PAGE}&cursor=${cursor}`);
  }

  restoreFromTrash(id: string, to = ""): Promise<FolderEntry> {
    return postJson(apiPath`workspaces/${this.workspaceId}/trash/${id}/restore`, { to });
  }

  deleteFromTrash(id: string): Promise<void> {
    return sendDelete(apiPath`workspaces/${this.workspaceId}/trash/${id}`);
  }

  search(q: string, by: "name" | "content", path: string, signal: AbortSignal): Promise<FileSearchResult> {
    return getJson(apiPath`workspaces/${this.workspaceId}/files/search?q=${q}&by=${by}&path=${path}&ignore_case=true&limit=${FILES_PER_PAGE}`, signal);
  }

  /** Where the bytes of a file are. */
  downloadUrl(path: string, inline = false): string {
    return `/api/v1/${apiPath`workspaces/${this.workspaceId}/files/content?path=${path}&inline=${String(inline)}`}`;
  }

  zipUrl(path: string): string {
    return `/api/v1/${apiPath`workspaces/${this.workspaceId}/files/archive?path=${path}`}`;
  }

  /** Raises where a folder cannot be had as a zip: a browser would save the refusal as if it were the file. */
  async checkZip(path: string): Promise<void> {
    const cut = new AbortController();
    await sendRequest(this.zipUrl(path), { signal: cut.signal });
    cut.abort();
  }

  /** Sends a file, telling how far it is. */
  uploadFile(path: string, file: Blob, how: UploadOptions): Promise<void> {
    const request = new XMLHttpRequest();
    return new Promise((done, fail) => {
      const place = apiPath`workspaces/${this.workspaceId}/files/content?path=${path}&overwrite=${String(how.overwrite)}`;
      request.open("PUT", `/api/v1/${place}`);
      request.setRequestHeader("content-type", "application/octet-stream");
      if (!how.overwrite) request.setRequestHeader("if-none-match", "*");
      request.upload.onprogress = (event) => how.progress(event.loaded);
      request.onload = () => (request.status < 300 ? done() : fail(readUploadProblem(request)));
      request.onerror = () => fail(new Problem({ title: "Offline", status: 0, detail: how.cut, kind: "offline" }));
      request.onabort = () => fail(new DOMException("", "AbortError"));
      how.signal.addEventListener("abort", () => request.abort());
      request.send(file);
    });
  }
}

export interface UploadOptions {
  overwrite: boolean;
  signal: AbortSignal;
  /** What to say where the way to the server broke. */
  cut: string;
  progress(sent: number): void;
}

function readUploadProblem(request: XMLHttpRequest): Problem {
  try {
    return new Problem(JSON.parse(request.responseText) as ConstructorParameters<typeof Problem>[0]);
  } catch {
    return new Problem({ title: request.statusText, status: request.status, detail: request.statusText, kind: "failed" });
  }
}
