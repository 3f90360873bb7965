import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { pathOf, placeOf } from "../../state/router.svelte";
import { beside, called, crumbs, fromSteps, join, name, parent, shown, steps, whole, within, wrong } from "./file-paths";

const part = fc.oneof(fc.string({ minLength: 1, unit: "grapheme" }), fc.constantFrom("base64:eA==", "%2e", "a?b#c", "<img src=x>", "…", "\\", "%")).filter((one) => !wrong(one) && !one.includes("/"));
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.reduce((made, one) => join(made, one), ""));
// "a/\xff.txt"
const ODD = "base64:YS__LnR4dA==";

describe("paths", () => {
  it("come back from the address as they went there", () => {
    fc.assert(
      fc.property(path, (given) => {
        const place = placeOf(new URL(pathOf("files", "w", ...steps(given)), "http://x"));
        expect(place.page).toBe("files");
        expect(place.rest[0]).toBe("w");
        expect(fromSteps(place.rest.slice(1))).toBe(given);
      }),
    );
  });

  it("are taken apart as they were put together", () => {
    fc.assert(
      fc.property(path, part, (folder, last) => {
        const below = join(folder, last);
        expect(parent(below)).toBe(folder);
        expect(name(below)).toBe(last);
        expect(within(below, folder)).toBe(true);
        expect(crumbs(below).map((crumb) => crumb.name).join("/")).toBe(whole(below));
      }),
    );
  });

  it("that are no text are kept byte by byte", () => {
    expect(parent(ODD)).toBe("a");
    expect(name(ODD)).toBe("\ufffd.txt");
    expect(crumbs(ODD).map((crumb) => crumb.path)).toEqual(["a", ODD]);
    expect(fromSteps(steps(ODD))).toBe(ODD);
    // "\xff/b"
    expect(join("base64:_w==", "b")).toBe("base64:_y9i");
    expect(parent("base64:_y9i")).toBe("base64:_w==");
  });

  it("that look like bytes but are names are told apart", () => {
    expect(join("", "base64:eA==")).toBe("./base64:eA==");
    expect(name("./base64:eA==")).toBe("base64:eA==");
    expect(fromSteps(steps("./base64:eA=="))).toBe("./base64:eA==");
    expect(fromSteps(["base64:!!"])).toBe("base64:!!");
  });

  it("are shown on one line, with nothing hidden", () => {
    expect(called("a/new\nline\u202etxt.exe")).toBe("new\\nline\\u202etxt.exe");
    expect(shown("a\tb/c")).toBe("a\\tb/c");
    expect(whole("a\tb/c")).toBe("a\tb/c");
  });

  it("know what no name is", () => {
    expect([wrong(""), wrong(" "), wrong("a//b"), wrong("/a"), wrong("../a"), wrong("a/."), wrong("a\0b"), wrong("x".repeat(256))]).toEqual([
      "empty", "empty", "empty", "empty", "dots", "dots", "nul", "long",
    ]);
    expect([wrong("a b"), wrong("a/b.txt"), wrong("..."), wrong(".env")]).toEqual(["", "", "", ""]);
  });

  it("find a free name beside one that is taken", () => {
    const taken = new Set(["d/a.txt", "d/a (2).txt"]);
    expect(beside("d/a.txt", (one) => taken.has(one))).toBe("d/a (3).txt");
    expect(beside("x.tar.gz", () => false)).toBe("x (2).tar.gz");
    expect(beside(".profile", () => false)).toBe(".profile (2)");
    expect(beside("Makefile", () => false)).toBe("Makefile (2)");
  });
});

it("knows an address that names no page", () => {
  expect(placeOf(new URL("http://x/nonsense/page")).unknown).toBe(true);
  for (const path of ["/", "/chat", "/files/w/a.txt"]) expect(placeOf(new URL(path, "http://x")).unknown).toBe(false);
});
