/** A turn, run again: at once, or after a question where others would be set aside by it. */

import type { Session, Turn } from "../../log/session";
import * as sessionApi from "../../net/session-api";
import type { ChatPageState } from "../chat-page-state.svelte";
import { countLaterTurns } from "./conversation-rows";

/** Returns whether it is done; where it is asked about first, it is not yet. */
export async function retryOrAsk(page: ChatPageState, session: Session, turn: Turn, text = ""): Promise<boolean> {
  const count = countLaterTurns(session, turn);
  if (count) {
    page.openDialog({ kind: "again", turn: turn.id, text, later: count });
    return false;
  }
  await sessionApi.retryTurn(page.sessionId, turn.id, text);
  return true;
}
