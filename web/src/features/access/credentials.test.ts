import { describe, expect, it } from "vitest";

import { drawQrPath, explainBadScopes, isLoopbackUrl } from "./credentials";

describe("credentials", () => {
  it("for hooks are for hooks only, and none are for nothing", () => {
    const say = { noScope: "none", hookAlone: "alone" };
    expect([explainBadScopes([], say), explainBadScopes(["hook", "read"], say), explainBadScopes(["hook"], say), explainBadScopes(["read", "chat"], say)]).toEqual(["none", "alone", "", ""]);
  });

  it("are drawn as squares, a run at a time", () => {
    expect(drawQrPath(["0110", "1001"])).toBe("M1 0h2v1h-2zM0 1h1v1h-1zM3 1h1v1h-1z");
    expect([isLoopbackUrl("http://127.0.0.1:8090/login#x"), isLoopbackUrl("https://sylph.home.example/login#x")]).toEqual([true, false]);
  });
});
