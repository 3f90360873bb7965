import { describe, expect, it } from "vitest";

import { local, squares, unfit } from "./credentials";

describe("credentials", () => {
  it("for hooks are for hooks only, and none are for nothing", () => {
    const say = { noScope: "none", hookAlone: "alone" };
    expect([unfit([], say), unfit(["hook", "read"], say), unfit(["hook"], say), unfit(["read", "chat"], say)]).toEqual(["none", "alone", "", ""]);
  });

  it("are drawn as squares, a run at a time", () => {
    expect(squares(["0110", "1001"])).toBe("M1 0h2v1h-2zM0 1h1v1h-1zM3 1h1v1h-1z");
    expect([local("http://127.0.0.1:8090/login#x"), local("https://sylph.home.example/login#x")]).toEqual([true, false]);
  });
});
