/** Answers to what a session asks; where somebody else was faster, who that was. */

import { Problem } from "../../net/api";
import { app } from "../../state/app-state.svelte";
import { words } from "../../words";
import * as acts from "../../net/session-api";
import type { ChatPageState } from "../chat-page-state.svelte";

export async function submitAnswers(desk: ChatPageState, answers: acts.QuestionAnswer[]): Promise<boolean> {
  for (const { id } of answers) desk.answeredHere.add(id);
  try {
    await acts.answerQuestions(desk.sessionId, answers);
    for (const { id } of answers) desk.draftAnswers.delete(id);
    return true;
  } catch (error) {
    for (const { id } of answers) desk.answeredHere.delete(id);
    if (error instanceof Problem && error.kind === "answered") {
      const { by = "", answer = "" } = error.details;
      desk.showNotice(by ? words.chat.late(by, words.ask.said[answer] ?? answer) : error.message);
      desk.lateAnswers += 1;
    } else {
      app.fail(error);
    }
    return false;
  }
}
