import { describe, expect, it } from "vitest";

import { bodyOf, differs, formOf, type GitView } from "./git-remote";

const GIT: GitView = { remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a", "b"], key: null, stored: true, repository: true };

describe("a git remote", () => {
  it("is sent whole, but the key only where there is a new one", () => {
    const form = formOf(GIT);
    expect(bodyOf({ ...form, hosts: " a \n\n" })).toEqual({ remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a"] });
    expect(bodyOf({ ...form, key: "PRIVATE" })).toMatchObject({ key: "PRIVATE" });
    expect([differs(form, GIT), differs({ ...form, branch: "x" }, GIT), differs({ ...form, key: "k" }, GIT)]).toEqual([false, true, true]);
  });
});
