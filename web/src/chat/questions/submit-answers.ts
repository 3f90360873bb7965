/** Answers to what a session asks; where somebody else was faster, who that was. */

import { Problem } from "../../net/api";
import { app } from "../../state/app-state.svelte";
import { words } from "../../words";
import * as acts from "../../net/session-api";
import type { Desk } from "../chat-page-state.svelte";

export async function answered(desk: Desk, answers: acts.Said[]): Promise<boolean> {
  for (const { id } of answers) desk.answered.add(id);
  try {
    await acts.answer(desk.session, answers);
    for (const { id } of answers) desk.begun.delete(id);
    return true;
  } catch (error) {
    for (const { id } of answers) desk.answered.delete(id);
    if (error instanceof Problem && error.kind === "answered") {
      const { by = "", answer = "" } = error.details;
      desk.say(by ? words.chat.late(by, words.ask.said[answer] ?? answer) : error.message);
      desk.late += 1;
    } else {
      app.fail(error);
    }
    return false;
  }
}
