/** The files of a workspace: every request that the page makes. */

import { type Answer, ask, at, get, post, Problem, remove, send } from "../../net/api";

export interface Workspace {
  id: string;
  path: string;
  name: string;
  origin: "server" | "added" | "session";
  there: boolean;
  git: boolean;
}

export type Kind = "folder" | "file" | "link" | "other";

export interface Entry {
  name: string;
  path: string;
  kind: Kind;
  size: number;
  modified: number;
  hidden: boolean;
  ignored: boolean;
  protected: boolean;
  to: string | null;
  to_kind: Kind | null;
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

export interface Written {
  path: string;
  size: number;
  modified: number;
  created: boolean;
}

export interface Trashed {
  id: string;
  path: string;
  kind: Kind;
  size: number;
  deleted: number;
  session: string | null;
  by: string | null;
}

export interface Hit {
  path: string;
  line: number | null;
  text: string | null;
}

export interface Hits {
  items: Hit[];
  cut: boolean;
  note: string | null;
}

export interface Page<T> {
  items: T[];
  next: string | null;
}

export const PAGE = 200;

export async function workspaces(): Promise<Workspace[]> {
  return (await get<Page<Workspace>>("workspaces")).items;
}

/** The files of one workspace. */
export class Store {
  constructor(readonly id: string) {}

  list(path: string, cursor = "", limit = PAGE): Promise<Page<Entry>> {
    return get(at`workspaces/${this.id}/files?path=${path}&cursor=${cursor}&limit=${limit}`);
  }

  read(path: string): Promise<Answer<FileView>> {
    return ask(at`workspaces/${this.id}/files/text?path=${path}`);
  }

  /** The file as it is now; null where it is still the version that is known. */
  async news(path: string, etag: string): Promise<Answer<FileView> | null> {
    const response = await send(at`workspaces/${this.id}/files/text?path=${path}`, { ifNoneMatch: etag });
    if (response.status === 304) return null;
    return { value: (await response.json()) as FileView, etag: response.headers.get("etag") ?? "" };
  }

  /** Writes over the version with this tag; without one, only where nothing is. */
  write(path: string, text: string, etag: string): Promise<Answer<Written>> {
    const wish = { method: "PUT", body: { text }, ...(etag ? { ifMatch: etag } : { ifNoneMatch: "*" }) };
    return ask(at`workspaces/${this.id}/files/text?path=${path}`, wish);
  }

  folder(path: string): Promise<Entry> {
    return post(at`workspaces/${this.id}/files/folder`, { path });
  }

  carry(how: "move" | "copy", path: string, to: string, overwrite = false): Promise<Entry> {
    return post(at`workspaces/${this.id}/files/${how}`, { path, to, overwrite });
  }

  async remove(path: string): Promise<Trashed> {
    return (await ask<Trashed>(at`workspaces/${this.id}/files?path=${path}`, { method: "DELETE" })).value;
  }

  trash(cursor = ""): Promise<Page<Trashed>> {
    return get(at`workspaces/${this.id}/trash?limit=${PAGE}&cursor=${cursor}`);
  }

  restore(id: string, to = ""): Promise<Entry> {
    return post(at`workspaces/${this.id}/trash/${id}/restore`, { to });
  }

  forget(id: string): Promise<void> {
    return remove(at`workspaces/${this.id}/trash/${id}`);
  }

  search(q: string, by: "name" | "content", path: string, signal: AbortSignal): Promise<Hits> {
    return get(at`workspaces/${this.id}/files/search?q=${q}&by=${by}&path=${path}&ignore_case=true&limit=${PAGE}`, signal);
  }

  /** Where the bytes of a file are. */
  bytes(path: string, inline = false): string {
    return `/api/v1/${at`workspaces/${this.id}/files/content?path=${path}&inline=${String(inline)}`}`;
  }

  zip(path: string): string {
    return `/api/v1/${at`workspaces/${this.id}/files/archive?path=${path}`}`;
  }

  /** Raises where a folder cannot be had as a zip: a browser would save the refusal as if it were the file. */
  async zippable(path: string): Promise<void> {
    const cut = new AbortController();
    await send(this.zip(path), { signal: cut.signal });
    cut.abort();
  }

  /** Sends a file, telling how far it is. */
  upload(path: string, file: Blob, how: Upload): Promise<void> {
    const request = new XMLHttpRequest();
    return new Promise((done, fail) => {
      const place = at`workspaces/${this.id}/files/content?path=${path}&overwrite=${String(how.overwrite)}`;
      request.open("PUT", `/api/v1/${place}`);
      request.setRequestHeader("content-type", "application/octet-stream");
      if (!how.overwrite) request.setRequestHeader("if-none-match", "*");
      request.upload.onprogress = (event) => how.progress(event.loaded);
      request.onload = () => (request.status < 300 ? done() : fail(refused(request)));
      request.onerror = () => fail(new Problem({ title: "Offline", status: 0, detail: how.cut, kind: "offline" }));
      request.onabort = () => fail(new DOMException("", "AbortError"));
      how.signal.addEventListener("abort", () => request.abort());
      request.send(file);
    });
  }
}

export interface Upload {
  overwrite: boolean;
  signal: AbortSignal;
  /** What to say where the way to the server broke. */
  cut: string;
  progress(sent: number): void;
}

function refused(request: XMLHttpRequest): Problem {
  try {
    return new Problem(JSON.parse(request.responseText) as ConstructorParameters<typeof Problem>[0]);
  } catch {
    return new Problem({ title: request.statusText, status: request.status, detail: request.statusText, kind: "failed" });
  }
}
