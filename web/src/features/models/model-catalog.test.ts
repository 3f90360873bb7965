import { describe, expect, it } from "vitest";

import { formatPrice, type ModelDetails, searchModels } from "./model-catalog";

describe("models", () => {
  it("are found by all words, the default first; prices may be unknown", () => {
    const all: ModelDetails[] = [{ id: "a/small", provider: "a", default: false }, { id: "a/large", provider: "a", default: true }];
    expect(searchModels(all, "").map((one) => one.id)).toEqual(["a/large", "a/small"]);
    expect(searchModels(all, "A sm").map((one) => one.id)).toEqual(["a/small"]);
    expect([formatPrice(null), formatPrice(0), formatPrice(1_250_000)]).toEqual(["unknown", "free", "$1.25"]);
  });
});
