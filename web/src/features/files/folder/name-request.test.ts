import { describe, expect, it } from "vitest";

import { nameSelection, suggestName, targetPath } from "./name-request";

describe("naming", () => {
  it("begins with what there is, and leads where it is meant to", () => {
    const rename = { what: "rename", path: "src/a.py" } as const;
    expect([suggestName(rename), targetPath(rename, "b.py"), targetPath(rename, "sub/b.py")]).toEqual(["a.py", "src/b.py", "src/sub/b.py"]);
    const move = { what: "move", path: "src/a.py" } as const;
    expect([suggestName(move), targetPath(move, "lib/a.py")]).toEqual(["src/a.py", "lib/a.py"]);
    expect(targetPath({ what: "newFile", folder: "" }, "base64:x")).toBe("./base64:x");
    expect(suggestName({ what: "newFolder", folder: "a" })).toBe("");
  });

  it("chooses the name without its ending", () => {
    expect([nameSelection("a.py"), nameSelection("src.d/a"), nameSelection(".env"), nameSelection("src/a.tar.gz")]).toEqual([[0, 1], [6, 7], [0, 4], [4, 9]]);
  });
});
