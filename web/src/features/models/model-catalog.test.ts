import { describe, expect, it } from "vitest";

import { price, searched, type Model } from "./model-catalog";

describe("models", () => {
  it("are found by all words, the default first; prices may be unknown", () => {
    const all: Model[] = [{ id: "a/small", provider: "a", default: false }, { id: "a/large", provider: "a", default: true }];
    expect(searched(all, "").map((one) => one.id)).toEqual(["a/large", "a/small"]);
    expect(searched(all, "A sm").map((one) => one.id)).toEqual(["a/small"]);
    expect([price(null), price(0), price(1_250_000)]).toEqual(["unknown", "free", "$1.25"]);
  });
});
