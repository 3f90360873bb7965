import { describe, expect, it } from "vitest";

import { begun, chosen, meant } from "./name-request";

describe("naming", () => {
  it("begins with what there is, and leads where it is meant to", () => {
    const rename = { what: "rename", path: "src/a.py" } as const;
    expect([begun(rename), meant(rename, "b.py"), meant(rename, "sub/b.py")]).toEqual(["a.py", "src/b.py", "src/sub/b.py"]);
    const move = { what: "move", path: "src/a.py" } as const;
    expect([begun(move), meant(move, "lib/a.py")]).toEqual(["src/a.py", "lib/a.py"]);
    expect(meant({ what: "newFile", folder: "" }, "base64:x")).toBe("./base64:x");
    expect(begun({ what: "newFolder", folder: "a" })).toBe("");
  });

  it("chooses the name without its ending", () => {
    expect([chosen("a.py"), chosen("src.d/a"), chosen(".env"), chosen("src/a.tar.gz")]).toEqual([[0, 1], [6, 7], [0, 4], [4, 9]]);
  });
});
