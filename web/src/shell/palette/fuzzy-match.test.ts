import fc from "fast-check";
import { expect, it } from "vitest";

import { bestMatches, rankMatch } from "./fuzzy-match";

it("puts what begins so before what contains it, and that before letters in order", () => {
  const names = ["a map of hedges", "Go to the dashboard", "My dash", "dashing", "The whole"];
  expect(bestMatches(names, (name) => name, "dash", 9)).toEqual(["dashing", "Go to the dashboard", "My dash"]);
  expect(bestMatches(names, (name) => name, "gtd", 9)).toEqual(["Go to the dashboard"]);
  expect(bestMatches(names, (name) => name, "dash my", 9)).toEqual(["My dash"]);
});

it("keeps the order and takes no more than wanted where nothing is typed", () => {
  expect(bestMatches([3, 1, 2], String, " ", 2)).toEqual([3, 1]);
});

it("finds everything by its own name", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (name) => rankMatch(name, name) > 0));
});
