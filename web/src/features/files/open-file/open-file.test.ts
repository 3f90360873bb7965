import { describe, expect, it } from "vitest";

import { Problem, type TaggedAnswer } from "../../../net/api";
import type { FileView, WriteResult } from "../files-api";
import { OpenFile } from "./open-file.svelte";

/** A disk with one file on it, which others may change. */
class Disk {
  text: string | null = "one\n";
  writes = 0;
  broken: Problem | null = null;

  get etag(): string {
    return `"${this.text}"`;
  }

  readText = async (): Promise<TaggedAnswer<FileView>> => {
    if (this.broken) throw this.broken;
    if (this.text === null) throw problem(404);
    const view = { name: "a", path: "a", size: 1, modified: 1, mode: "644", media: "text/plain", text: this.text, encoding: "utf-8", line_ends: "lf" } as const;
    return { value: view, etag: this.etag };
  };

  readTextIfChanged = async (_: string, etag: string): Promise<TaggedAnswer<FileView> | null> => (this.text !== null && etag === this.etag ? null : await this.readText());

  writeText = async (_: string, text: string, etag: string): Promise<TaggedAnswer<WriteResult>> => {
    if (this.broken) throw this.broken;
    if (this.text === null ? etag : etag !== this.etag) throw problem(412);
    this.text = text;
    this.writes++;
    return { value: { path: "a", size: text.length, modified: 2, created: false }, etag: this.etag };
  };
}

function problem(status: number): Problem {
  return new Problem({ title: "", status, detail: "no", kind: "x" });
}

async function opened(): Promise<{ disk: Disk; file: OpenFile; type: (text: string) => void }> {
  const disk = new Disk();
  const file = new OpenFile("a", disk);
  await file.open();
  let text = file.ownText;
  let base = text;
  const told = (): boolean => (file.dirty = text !== base);
  file.buffer = {
    text: () => text,
    replace: (next) => {
      text = next;
      told();
    },
    markSaved: (next) => {
      base = next;
      told();
    },
  };
  const type = (next: string): void => {
    text = next;
    told();
  };
  return { disk, file, type };
}

describe("an open file", () => {
  it("is saved over the version that was seen", async () => {
    const { disk, file, type } = await opened();
    type("two\n");
    expect(file.dirty).toBe(true);
    expect(await file.save()).toBe(true);
    expect([disk.text, file.dirty, file.conflict]).toEqual(["two\n", false, null]);
    type("three\n");
    expect(await file.save()).toBe(true);
  });

  it("stays changed where one types on while it is saved", async () => {
    const { file, type } = await opened();
    type("two\n");
    const saving = file.save();
    type("two and more\n");
    await saving;
    expect(file.dirty).toBe(true);
  });

  it("is never written over what was not seen", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.text = "theirs\n";
    expect(await file.save()).toBe(false);
    expect([disk.text, file.conflict?.view?.text, file.ownText]).toEqual(["theirs\n", "theirs\n", "mine\n"]);
    disk.text = "theirs again\n";
    expect(await file.overwrite()).toBe(false);
    expect(file.conflict?.view?.text).toBe("theirs again\n");
    expect(await file.overwrite()).toBe(true);
    expect([disk.text, file.dirty, file.conflict]).toEqual(["mine\n", false, null]);
  });

  it("takes theirs, or goes on with mine and asks again", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.text = "theirs\n";
    await file.save();
    file.keepEditing();
    expect([file.ownText, file.foreignChange, file.conflict]).toEqual(["mine\n", "changed", null]);
    expect(await file.save()).toBe(false);
    file.takeTheirs();
    expect([file.ownText, file.dirty, file.foreignChange]).toEqual(["theirs\n", false, ""]);
    expect(await file.save()).toBe(true);
  });

  it("shows what others wrote, where nothing was changed here", async () => {
    const { disk, file } = await opened();
    disk.text = "theirs\n";
    await file.checkForChanges();
    expect([file.ownText, file.foreignChange, file.textBefore]).toEqual(["theirs\n", "renewed", "one\n"]);
    await file.checkForChanges();
    expect(file.foreignChange).toBe("renewed");
  });

  it("tells what others wrote, where something was", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.text = "theirs\n";
    await file.checkForChanges();
    expect([file.ownText, file.foreignChange]).toEqual(["mine\n", "changed"]);
    disk.text = "one\n";
    await file.checkForChanges();
    expect(file.foreignChange).toBe("");
    disk.text = "mine\n";
    await file.checkForChanges();
    expect([file.foreignChange, file.dirty]).toEqual(["", false]);
  });

  it("tells that it has gone, and is written anew", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.text = null;
    await file.checkForChanges();
    expect(file.foreignChange).toBe("gone");
    expect(await file.save()).toBe(false);
    expect(file.conflict).toEqual({ view: null, etag: "" });
    expect(await file.overwrite()).toBe(true);
    expect(disk.text).toBe("mine\n");
  });

  it("tells why theirs cannot be shown", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.text = "theirs\n";
    disk.readTextIfChanged = () => Promise.reject(problem(413));
    expect(await file.save()).toBe(false);
    expect([file.problem?.status, file.conflict, file.ownText, disk.text]).toEqual([413, null, "mine\n", "theirs\n"]);
  });

  it("keeps what was written where saving fails", async () => {
    const { disk, file, type } = await opened();
    type("mine\n");
    disk.broken = problem(507);
    expect(await file.save()).toBe(false);
    expect([file.problem?.status, file.ownText, file.dirty]).toEqual([507, "mine\n", true]);
    await file.checkForChanges();
    disk.broken = null;
    expect(await file.save()).toBe(true);
    expect(file.problem).toBeNull();
  });
});
