/** Files on their way to the server, one after the other; a name that is taken is asked about. */

import { Problem } from "../../../net/api";
import { fileName, findFreeName, joinPath } from "../file-paths";
import type { FilesApi } from "../files-api";

export interface UploadSource {
  /** Where it belongs below the folder: a name, or a path where a folder was dropped. */
  below: string;
  file: Blob;
}

export type UploadStage = "waiting" | "sending" | "done" | "failed" | "skipped";

export interface UploadItem {
  id: number;
  path: string;
  size: number;
  sent: number;
  stage: UploadStage;
  problem: Problem | null;
}

export type CollisionChoice = "replace" | "both" | "skip";

export interface NameCollision {
  name: string;
  /** How many come after it. */
  left: number;
  answer(choice: CollisionChoice, all: boolean): void;
}

export class UploadQueue {
  list = $state<UploadItem[]>([]);
  collision = $state.raw<NameCollision | null>(null);
  busy = $state(false);
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nobody looks at it
  #files = new Map<number, Blob>();
  #ids = 0;
  #always: CollisionChoice | null = null;
  #stop = new AbortController();

  constructor(
    private readonly filesApi: Pick<FilesApi, "uploadFile">,
    private readonly done: () => void,
    private readonly cut: string,
  ) {}

  add(folder: string, given: readonly UploadSource[]): void {
    if (!this.busy) this.clear();
    for (const { below, file } of given) {
      const id = ++this.#ids;
      this.#files.set(id, file);
      this.list.push({ id, path: joinPath(folder, below), size: file.size, sent: 0, stage: "waiting", problem: null });
    }
    if (!this.busy) void this.#uploadAll();
  }

  cancel(): void {
    this.#stop.abort();
    this.collision?.answer("skip", true);
    for (const one of this.list) if (one.stage === "waiting") one.stage = "skipped";
  }

  clear(): void {
    this.list = [];
    this.#files.clear();
  }

  async #uploadAll(): Promise<void> {
    this.busy = true;
    this.#stop = new AbortController();
    this.#always = null;
    // What is added meanwhile is sent as well.
    for (let one = this.#nextWaiting(); one; one = this.#nextWaiting()) {
      one.stage = "sending";
      await this.#uploadOne(one);
      this.#files.delete(one.id);
    }
    this.busy = false;
    this.done();
  }

  #nextWaiting(): UploadItem | undefined {
    return this.list.find((one) => one.stage === "waiting");
  }

  async #uploadOne(one: UploadItem): Promise<void> {
    const file = this.#files.get(one.id) ?? new Blob();
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nobody looks at it
    const tried = new Set<string>();
    let overwrite = false;
    let both = false;
    while (one.stage === "sending") {
      try {
        one.sent = 0;
        await this.filesApi.uploadFile(one.path, file, { overwrite, signal: this.#stop.signal, cut: this.cut, progress: (sent) => (one.sent = sent) });
        one.sent = one.size;
        one.stage = "done";
      } catch (error) {
        if (error instanceof DOMException) {
          one.stage = "skipped";
        } else if (!(error instanceof Problem)) {
          throw error;
        } else if (error.status !== 412 || overwrite) {
          one.stage = "failed";
          one.problem = error;
        } else {
          tried.add(one.path);
          const choice: CollisionChoice = both ? "both" : await this.#askAboutCollision(one);
          overwrite = choice === "replace";
          both = choice === "both";
          if (choice === "skip") one.stage = "skipped";
          if (both) one.path = findFreeName([...tried][0] ?? one.path, (path) => tried.has(path));
        }
      }
    }
  }

  #askAboutCollision(one: UploadItem): Promise<CollisionChoice> {
    if (this.#stop.signal.aborted) return Promise.resolve("skip");
    if (this.#always) return Promise.resolve(this.#always);
    const left = this.list.filter((other) => other.stage === "waiting").length;
    return new Promise((done) => {
      this.collision = {
        name: fileName(one.path),
        left,
        answer: (choice, all) => {
          this.collision = null;
          if (all) this.#always = choice;
          done(choice);
        },
      };
    });
  }
}

/** What was dropped, with what is in folders. */
export async function readDroppedFiles(transfer: DataTransfer): Promise<UploadSource[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (!entries.length) return [...transfer.files].map((file) => ({ below: file.name, file }));
  return (await Promise.all(entries.map((entry) => readEntry(entry, "")))).flat();
}

async function readEntry(entry: FileSystemEntry, above: string): Promise<UploadSource[]> {
  const below = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
    return [{ below, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: UploadSource[] = [];
  for (;;) {
    // They come in bunches, until there are none.
    const bunch = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (!bunch.length) return found;
    for (const one of bunch) found.push(...(await readEntry(one, `${below}/`)));
  }
}
