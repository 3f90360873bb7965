import { describe, expect, it } from "vitest";

import { Problem } from "../../../net/api";
import type { UploadOptions } from "../files-api";
import { type CollisionChoice, UploadQueue } from "./upload-queue.svelte";

class Sink {
  there = new Map<string, string>();

  uploadFile = async (path: string, file: Blob, how: UploadOptions): Promise<void> => {
    how.signal.throwIfAborted();
    if (file.size > 9) throw new Problem({ title: "", status: 413, detail: "too large", kind: "too_large" });
    if (this.there.has(path) && !how.overwrite) throw new Problem({ title: "", status: 412, detail: "there", kind: "changed" });
    how.progress(file.size);
    this.there.set(path, await read(file));
  };
}

function read(file: Blob): Promise<string> {
  const reader = new FileReader();
  return new Promise((done) => {
    reader.onload = () => done(String(reader.result));
    reader.readAsText(file);
  });
}

async function sent(sink: Sink, files: Record<string, string>, answers: [CollisionChoice, boolean][]): Promise<UploadQueue> {
  const settled = Promise.withResolvers<boolean>();
  const uploads = new UploadQueue(sink, () => settled.resolve(true), "cut");
  uploads.add("d", Object.entries(files).map(([below, text]) => ({ below, file: new Blob([text]) })));
  const asked = setInterval(() => {
    if (uploads.collision) uploads.collision.answer(...(answers.shift() ?? ["skip", false]));
  }, 1);
  await settled.promise;
  clearInterval(asked);
  return uploads;
}

describe("uploads", () => {
  it("go one after the other, and one that fails holds up none", async () => {
    const sink = new Sink();
    const uploads = await sent(sink, { "a.txt": "a", "big.txt": "x".repeat(10), "sub/b.txt": "b" }, []);
    expect([...sink.there]).toEqual([["d/a.txt", "a"], ["d/sub/b.txt", "b"]]);
    expect(uploads.list.map((one) => one.stage)).toEqual(["done", "failed", "done"]);
    expect(uploads.list[1]?.problem?.status).toBe(413);
  });

  it("ask about a name that is taken", async () => {
    const sink = new Sink();
    for (const name of ["a", "b", "c.txt", "c (2).txt"]) sink.there.set(`d/${name}`, "old");
    const uploads = await sent(sink, { a: "new", b: "new", "c.txt": "new" }, [["replace", false], ["skip", false], ["both", false]]);
    expect(Object.fromEntries(sink.there)).toEqual({ "d/a": "new", "d/b": "old", "d/c.txt": "old", "d/c (2).txt": "old", "d/c (3).txt": "new" });
    expect(uploads.list.map((one) => one.stage)).toEqual(["done", "skipped", "done"]);
  });

  it("ask once where the answer is for all", async () => {
    const sink = new Sink();
    for (const name of ["a", "b", "c"]) sink.there.set(`d/${name}`, "old");
    await sent(sink, { a: "1", b: "2", c: "3" }, [["replace", true]]);
    expect([...sink.there.values()]).toEqual(["1", "2", "3"]);
  });

  it("end where they are cancelled", async () => {
    const sink = new Sink();
    sink.there.set("d/a", "old");
    const settled = Promise.withResolvers<boolean>();
    const uploads = new UploadQueue(sink, () => settled.resolve(true), "cut");
    uploads.add("d", ["a", "b"].map((below) => ({ below, file: new Blob(["new"]) })));
    await new Promise((done) => setTimeout(done, 5));
    expect(uploads.collision?.left).toBe(1);
    uploads.cancel();
    await settled.promise;
    expect([...sink.there.values()]).toEqual(["old"]);
    expect(uploads.list.map((one) => one.stage)).toEqual(["skipped", "skipped"]);
  });
});
