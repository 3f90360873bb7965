/** Answers to what a session asks; where somebody else was faster, who that was. */

import { Problem } from "../../net/api";
import * as sessionApi from "../../net/session-api";
import { app } from "../../state/app-state.svelte";
import { words } from "../../words";
import type { ChatPageState } from "../chat-page-state.svelte";

export async function submitAnswers(page: ChatPageState, answers: sessionApi.QuestionAnswer[]): Promise<boolean> {
  for (const { id } of answers) page.answeredHere.add(id);
  try {
    await sessionApi.answerQuestions(page.sessionId, answers);
    for (const { id } of answers) page.draftAnswers.delete(id);
    return true;
  } catch (error) {
    for (const { id } of answers) page.answeredHere.delete(id);
    if (error instanceof Problem && error.kind === "answered") {
      const { by = "", answer = "" } = error.details;
      page.showNotice(by ? words.chat.late(by, words.ask.said[answer] ?? answer) : error.message);
      page.lateAnswers += 1;
    } else {
      app.showProblem(error);
    }
    return false;
  }
}
