import { describe, expect, it } from "vitest";

import { type GitView, hasGitChanges, toGitBody, toGitForm } from "./git-remote";

const GIT: GitView = { remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a", "b"], key: null, stored: true, repository: true };

describe("a git remote", () => {
  it("is sent whole, but the key only where there is a new one", () => {
    const form = toGitForm(GIT);
    expect(toGitBody({ ...form, hosts: " a \n\n" })).toEqual({ remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a"] });
    expect(toGitBody({ ...form, key: "PRIVATE" })).toMatchObject({ key: "PRIVATE" });
    expect([hasGitChanges(form, GIT), hasGitChanges({ ...form, branch: "x" }, GIT), hasGitChanges({ ...form, key: "k" }, GIT)]).toEqual([false, true, true]);
  });
});
