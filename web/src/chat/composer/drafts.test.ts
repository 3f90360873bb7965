import { describe, expect, it } from "vitest";

import { listRecentWorkspaces } from "../recent-workspaces";
import { DraftStore, MessageHistory } from "./drafts";

describe("drafts", () => {
  it("are kept for each session", () => {
    const drafts = new DraftStore();
    drafts.setDraft("a", "one");
    drafts.setDraft("b", "two");
    expect([drafts.getDraft("a"), new DraftStore().getDraft("b"), drafts.getDraft("c")]).toEqual(["one", "two", ""]);
    drafts.setDraft("a", "");
    expect(new DraftStore().getDraft("a")).toBe("");
  });

  it("are kept in memory where the browser keeps nothing", () => {
    const drafts = new DraftStore(() => {
      throw new DOMException("no", "SecurityError");
    });
    drafts.setDraft("a", "one");
    expect(drafts.getDraft("a")).toBe("one");
  });
});

describe("recall", () => {
  it("goes back to the first words, and forth to an empty box", () => {
    const recall = new MessageHistory();
    const said = ["one", "two"];
    expect([recall.stepThrough(said, 1), recall.stepThrough(said, 1), recall.stepThrough(said, 1)]).toEqual(["two", "one", null]);
    expect([recall.stepThrough(said, -1), recall.stepThrough(said, -1), recall.stepThrough(said, -1)]).toEqual(["two", "", null]);
  });

  it("has nothing to say where nothing was said", () => {
    expect(new MessageHistory().stepThrough([], 1)).toBeNull();
  });
});

it("lists each folder once, the latest first", () => {
  const rows = [
    { workspace: "/a", updated: 1 },
    { workspace: "/b", updated: 3 },
    { workspace: "/a", updated: 5 },
    { workspace: "", updated: 9 },
  ];
  expect(listRecentWorkspaces(rows)).toEqual(["/a", "/b"]);
});
