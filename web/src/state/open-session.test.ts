import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";

import type { SylphEvent } from "../log/events";
import type { Session } from "../log/session";
import { foldSession } from "../log/session-fold";
import { OpenSession, type SessionSnapshot } from "./open-session.svelte";

const FOLDER = join(import.meta.dirname, "../../../tests/recordings");
const RECORDINGS = readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson"));

function recording(name: string): SylphEvent[] {
  return readFileSync(join(FOLDER, name), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .filter((record) => record.kind === "event");
}

/** What the server would say of a session: it has folded all of it. */
function header(events: SylphEvent[]): SessionSnapshot {
  const all = foldSession("s", events);
  const open = [...all.questions.values()].filter((question) => question.open);
  return {
    ...all,
    cost: all.unpriced ? null : all.cost,
    context: { tokens: all.context, window: all.window },
    queue: all.queue.map(({ id, text, follow }) => ({ id, text, delivery: follow ? "follow" : "steer" })),
    questions: open.map(({ asked }) => ({ ...asked, calls: (asked.calls ?? []).map((id) => ({ id })) })),
    unread: false,
    interrupted: false,
  };
}

/** A server that knows the first `upto` facts when it is asked for the session, and all when asked for facts. */
function serve(events: SylphEvent[], upto: number): void {
  vi.stubGlobal("fetch", async (path: string) => {
    const asked = new URL(path, "http://x");
    if (!asked.pathname.endsWith("/facts")) return Response.json(header(events.slice(0, upto)));
    const [after, limit] = ["after", "limit"].map((name) => Number(asked.searchParams.get(name))) as [number, number];
    return Response.json({ items: events.slice(after, after + limit), next: null });
  });
}

const nobody = { follow: (): void => undefined, unfollow: (): void => undefined };

/** What can be told without the beginning. */
function told(session: Session): unknown {
  const { seq, title, workspace, model, mode, sandbox, state, parent, plan, roles, usage, budget, context, window } = session;
  const { pinned, archived, deleted, unpriced } = session;
  const open = [...session.questions.values()].filter((one) => one.open).map((one) => one.asked.id);
  const queue = session.queue.map((one) => one.id);
  const cost = unpriced ? null : session.cost;
  return { seq, title, workspace, model, mode, sandbox, state, parent, plan, roles, usage, budget, context, window, pinned, archived, deleted, open: open.toSorted(), queue, cost };
}

afterEach(() => vi.unstubAllGlobals());

describe.each(RECORDINGS)("%s", (name) => {
  const events = recording(name);

  it("is the same session whether it was read from its beginning or opened at its end", async () => {
    const places = fc.record({ upto: fc.integer({ min: 1, max: events.length }), page: fc.integer({ min: 1, max: 60 }) });
    await fc.assert(
      fc.asyncProperty(places, async ({ upto, page }) => {
        serve(events, upto);
        const chat = new OpenSession("s", nobody, page);
        await chat.open();
        expect(told(chat.session)).toEqual(told(foldSession("s", events.slice(0, upto))));
        // What happens from then on changes both alike.
        chat.applyEvents(events.slice(upto));
        expect(told(chat.session)).toEqual(told(foldSession("s", events)));
        while (chat.hasOlder) await chat.loadOlder();
        expect(chat.session.turns).toEqual(foldSession("s", events).turns);
      }),
      { numRuns: 12 },
    );
  });
});
