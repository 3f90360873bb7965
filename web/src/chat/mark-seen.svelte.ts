/** Tells the server what somebody has looked at: once for each turn that ended, when its end is on the screen. */

import * as sessionApi from "../net/session-api";
import { app } from "../state/app-state.svelte";
import type { OpenSession } from "../state/open-session.svelte";

export function markSeen(look: () => { chat: OpenSession; atEnd: boolean }): void {
  let visible = $state(!document.hidden);
  let told = 0;

  $effect(() => {
    const updateVisible = (): void => {
      visible = !document.hidden;
    };
    document.addEventListener("visibilitychange", updateVisible);
    return () => document.removeEventListener("visibilitychange", updateVisible);
  });

  $effect(() => {
    const { chat, atEnd } = look();
    const { session, loading } = chat;
    const row = app.sessions.get(session.id);
    const last = session.turns.findLast((turn) => turn.outcome);
    if (loading || !visible || !atEnd || !last || !app.hasScope("chat")) return;
    const upto = session.seq;
    const ended = lastTurnEnd(chat);
    if (ended <= Math.max(told, session.seen) && !row?.unread) return;
    if (upto <= told) return;
    told = upto;
    sessionApi.updateSession(session.id, { seen: upto }).then(
      () => {
        const now = app.sessions.get(session.id);
        if (now?.unread) app.sessions.set(now.id, { ...now, unread: false });
      },
      // It stays unread: nothing is lost, and the next look tells it again.
      () => undefined,
    );
  });
}

/** The fact with which the last turn ended. */
function lastTurnEnd(chat: OpenSession): number {
  return chat.facts.findLast((fact) => fact.type === "turn.ended")?.seq ?? 0;
}
