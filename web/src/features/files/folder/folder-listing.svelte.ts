/** A folder, as far as it was read. */

import { Problem } from "../../../net/api";
import { FILES_PER_PAGE, type FilesApi, type FolderEntry } from "../files-api";

const MAX_PAGE = 1000;

export class FolderListing {
  path = $state("");
  entries = $state.raw<FolderEntry[]>([]);
  /** Where to go on; null where this is all. */
  next = $state.raw<string | null>(null);
  loading = $state(false);
  /** Whether it was read at all. */
  ready = $state(false);
  problem = $state.raw<Problem | null>(null);
  #turn = 0;

  constructor(private readonly filesApi: Pick<FilesApi, "listFolder">) {}

  /** Reads a folder. Where it cannot be read what was shown stays, and the reason is raised. */
  async open(path: string): Promise<void> {
    const turn = ++this.#turn;
    this.loading = true;
    try {
      const page = await this.filesApi.listFolder(path);
      if (turn !== this.#turn) return;
      [this.path, this.entries, this.next, this.ready, this.problem] = [path, page.items, page.next, true, null];
    } finally {
      if (turn === this.#turn) this.loading = false;
    }
  }

  async loadMore(): Promise<void> {
    if (this.next === null || this.loading) return;
    await this.#runRequest(async () => {
      const page = await this.filesApi.listFolder(this.path, this.next ?? "");
      return { items: [...this.entries, ...page.items], next: page.next };
    });
  }

  /** Reads it again, as far as it was read. */
  async refresh(): Promise<void> {
    const { path } = this;
    const wanted = Math.max(FILES_PER_PAGE, this.entries.length);
    await this.#runRequest(async () => {
      const items: FolderEntry[] = [];
      let next: string | null = "";
      while (next !== null && items.length < wanted) {
        const page: { items: FolderEntry[]; next: string | null } = await this.filesApi.listFolder(path, next, Math.min(MAX_PAGE, wanted - items.length));
        items.push(...page.items);
        next = page.next;
      }
      return { items, next };
    });
  }

  async #runRequest(work: () => Promise<{ items: FolderEntry[]; next: string | null }>): Promise<void> {
    const turn = ++this.#turn;
    this.loading = true;
    try {
      const { items, next } = await work();
      if (turn !== this.#turn) return;
      [this.entries, this.next, this.problem] = [items, next, null];
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (turn === this.#turn) this.problem = error;
    } finally {
      if (turn === this.#turn) this.loading = false;
    }
  }
}

/** Those that a list shows. */
export function filterEntries(entries: readonly FolderEntry[], filter: string, hidden: boolean): FolderEntry[] {
  const wanted = filter.trim().toLowerCase();
  return entries.filter((entry) => (hidden || !entry.hidden) && (!wanted || entry.name.toLowerCase().includes(wanted)));
}

/** What opening it leads to: of a link, what it points to. */
export function entryTarget(entry: FolderEntry): "folder" | "file" | "nowhere" {
  if (entry.protected) return "nowhere";
  const kind = entry.kind === "link" ? entry.to_kind : entry.kind;
  return kind === "folder" || kind === "file" ? kind : "nowhere";
}
