import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { buildPath, parseRoute } from "../../state/router.svelte";
import { displayName, displayPath, fileName, findFreeName, findNameFault, isWithin, joinPath, listBreadcrumbs, parentPath, pathText, pathToSegments, segmentsToPath } from "./file-paths";

const part = fc.oneof(fc.string({ minLength: 1, unit: "grapheme" }), fc.constantFrom("base64:eA==", "%2e", "a?b#c", "<img src=x>", "…", "\\", "%")).filter((one) => !findNameFault(one) && !one.includes("/"));
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.reduce((made, one) => joinPath(made, one), ""));
// "a/\xff.txt"
const ODD = "base64:YS__LnR4dA==";

describe("paths", () => {
  it("come back from the address as they went there", () => {
    fc.assert(
      fc.property(path, (given) => {
        const place = parseRoute(new URL(buildPath("files", "w", ...pathToSegments(given)), "http://x"));
        expect(place.page).toBe("files");
        expect(place.rest[0]).toBe("w");
        expect(segmentsToPath(place.rest.slice(1))).toBe(given);
      }),
    );
  });

  it("are taken apart as they were put together", () => {
    fc.assert(
      fc.property(path, part, (folder, last) => {
        const below = joinPath(folder, last);
        expect(parentPath(below)).toBe(folder);
        expect(fileName(below)).toBe(last);
        expect(isWithin(below, folder)).toBe(true);
        expect(listBreadcrumbs(below).map((crumb) => crumb.name).join("/")).toBe(pathText(below));
      }),
    );
  });

  it("that are no text are kept byte by byte", () => {
    expect(parentPath(ODD)).toBe("a");
    expect(fileName(ODD)).toBe("\ufffd.txt");
    expect(listBreadcrumbs(ODD).map((crumb) => crumb.path)).toEqual(["a", ODD]);
    expect(segmentsToPath(pathToSegments(ODD))).toBe(ODD);
    // "\xff/b"
    expect(joinPath("base64:_w==", "b")).toBe("base64:_y9i");
    expect(parentPath("base64:_y9i")).toBe("base64:_w==");
  });

  it("that look like bytes but are names are told apart", () => {
    expect(joinPath("", "base64:eA==")).toBe("./base64:eA==");
    expect(fileName("./base64:eA==")).toBe("base64:eA==");
    expect(segmentsToPath(pathToSegments("./base64:eA=="))).toBe("./base64:eA==");
    expect(segmentsToPath(["base64:!!"])).toBe("base64:!!");
  });

  it("are shown on one line, with nothing hidden", () => {
    expect(displayName("a/new\nline\u202etxt.exe")).toBe("new\\nline\\u202etxt.exe");
    expect(displayPath("a\tb/c")).toBe("a\\tb/c");
    expect(pathText("a\tb/c")).toBe("a\tb/c");
  });

  it("know what no name is", () => {
    expect([findNameFault(""), findNameFault(" "), findNameFault("a//b"), findNameFault("/a"), findNameFault("../a"), findNameFault("a/."), findNameFault("a\0b"), findNameFault("x".repeat(256))]).toEqual([
      "empty", "empty", "empty", "empty", "dots", "dots", "nul", "long",
    ]);
    expect([findNameFault("a b"), findNameFault("a/b.txt"), findNameFault("..."), findNameFault(".env")]).toEqual(["", "", "", ""]);
  });

  it("find a free name beside one that is taken", () => {
    const taken = new Set(["d/a.txt", "d/a (2).txt"]);
    expect(findFreeName("d/a.txt", (one) => taken.has(one))).toBe("d/a (3).txt");
    expect(findFreeName("x.tar.gz", () => false)).toBe("x (2).tar.gz");
    expect(findFreeName(".profile", () => false)).toBe(".profile (2)");
    expect(findFreeName("Makefile", () => false)).toBe("Makefile (2)");
  });
});

it("knows an address that names no page", () => {
  expect(parseRoute(new URL("http://x/nonsense/page")).unknown).toBe(true);
  for (const path of ["/", "/chat", "/files/w/a.txt"]) expect(parseRoute(new URL(path, "http://x")).unknown).toBe(false);
});
