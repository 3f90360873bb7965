import { readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, it } from "vitest";

import type { SylphEvent } from "../log/events";
import { Fold } from "../log/fold";
import { factAt, past } from "./past";

const FILE = join(import.meta.dirname, "../../../tests/recordings/approvals.ndjson");
const FACTS = readFileSync(FILE, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)).filter((one) => one.kind === "event") as SylphEvent[];

it("is at every fact what the fold was there", () => {
  const fold = new Fold("s");
  for (const fact of FACTS) {
    fold.take([fact]);
    const made = past("s", FACTS, fact.seq, 1000);
    expect(made.session.state).toBe(fold.session.state);
    expect(made.items).toEqual(fold.session.turns.flatMap((turn) => turn.items));
  }
});

it("begins where the facts begin, and shows the end of much", () => {
  const end = FACTS.at(-1)?.seq ?? 0;
  const all = past("s", FACTS, end, 1000).items.length;
  expect(past("s", FACTS, end, 1)).toMatchObject({ before: all - 1 });
  expect(past("s", FACTS.slice(3), end).session.seq).toBe(end);
  expect(past("s", [], 0).items).toEqual([]);
});

it("finds the fact of a moment", () => {
  const facts = [10, 20, 20, 30].map((ts, at) => ({ ts, seq: at + 1 }) as SylphEvent);
  expect([5, 10, 25, 20, 99].map((ts) => factAt(facts, ts))).toEqual([0, 0, 2, 2, 3]);
});
