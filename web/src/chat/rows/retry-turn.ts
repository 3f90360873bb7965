/** A turn, run again: at once, or after a question where others would be set aside by it. */

import type { Session, Turn } from "../../log/session";
import * as acts from "../../net/session-api";
import type { Desk } from "../chat-page-state.svelte";
import { later } from "./conversation-rows";

/** Returns whether it is done; where it is asked about first, it is not yet. */
export async function again(desk: Desk, session: Session, turn: Turn, text = ""): Promise<boolean> {
  const count = later(session, turn);
  if (count) {
    desk.open({ kind: "again", turn: turn.id, text, later: count });
    return false;
  }
  await acts.retry(desk.session, turn.id, text);
  return true;
}
