import { describe, expect, it } from "vitest";

import type { FilePage, FolderEntry } from "../files-api";
import { entryTarget, filterEntries, FolderListing } from "./folder-listing.svelte";

function entry(name: string, more: Partial<FolderEntry> = {}): FolderEntry {
  return { name, path: name, kind: "file", size: 1, modified: 1, hidden: name.startsWith("."), ignored: false, protected: false, to: null, to_kind: null, ...more };
}

class Shelf {
  names = Array.from({ length: 450 }, (_, index) => `f${String(index).padStart(3, "0")}`);
  waits: (() => void)[] = [];
  slow = false;

  listFolder = async (path: string, cursor = "", limit = 200): Promise<FilePage<FolderEntry>> => {
    if (this.slow) await new Promise<void>((done) => this.waits.push(done));
    const from = Number(cursor || 0);
    const items = this.names.slice(from, from + limit).map((name) => entry(`${path}${name}`));
    return { items, next: from + limit < this.names.length ? String(from + limit) : null };
  };
}

describe("a folder", () => {
  it("is read page by page, and read again as far as it was", async () => {
    const shelf = new Shelf();
    const folder = new FolderListing(shelf);
    await folder.open("");
    expect([folder.entries.length, folder.next]).toEqual([200, "200"]);
    await folder.loadMore();
    await folder.loadMore();
    await folder.loadMore();
    expect([folder.entries.length, folder.next]).toEqual([450, null]);
    shelf.names.push("new");
    await folder.refresh();
    expect(folder.entries.length).toBe(450);
    await folder.loadMore();
    expect(folder.entries.at(-1)?.name).toBe("new");
  });

  it("shows the one that was asked for last", async () => {
    const shelf = new Shelf();
    const folder = new FolderListing(shelf);
    shelf.slow = true;
    const first = folder.open("a/");
    const second = folder.open("b/");
    shelf.waits.reverse().forEach((done) => done());
    await Promise.all([first, second]);
    expect([folder.path, folder.entries[0]?.name, folder.loading]).toEqual(["b/", "b/f000", false]);
  });

  it("shows what is wanted", () => {
    const all = [entry(".git"), entry("Main.py"), entry("main.ts")];
    expect(filterEntries(all, "MAIN", false).length).toBe(2);
    expect(filterEntries(all, "", true).length).toBe(3);
    expect(filterEntries(all, "", false).length).toBe(2);
  });

  it("knows where a name leads", () => {
    expect([
      entryTarget(entry("a")),
      entryTarget(entry("a", { kind: "link", to_kind: "folder" })),
      entryTarget(entry("a", { kind: "link" })),
      entryTarget(entry(".env", { protected: true })),
      entryTarget(entry("p", { kind: "other" })),
    ]).toEqual(["file", "folder", "nowhere", "nowhere", "nowhere"]);
  });
});
