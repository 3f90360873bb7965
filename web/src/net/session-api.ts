/** What can be done to a session, each as one request. */

import type { EncodedAttachment } from "../chat/composer/attachments";
import { apiPath, getItems, getJson, patchJson, postJson, sendDelete } from "./api";

export type MessageDelivery = "steer" | "follow";

export interface UntouchedFile {
  path: string;
  why: string;
}

export interface ChangedFile {
  path: string;
  what: string;
  added?: number | null;
  removed?: number | null;
  note?: string;
  undone?: boolean;
  diff?: string;
}

export interface UndoPlan {
  turn: string;
  files: ChangedFile[];
  left: UntouchedFile[];
}

export interface TurnChanges {
  turn: string;
  files: ChangedFile[];
  gaps?: string[];
}

export interface ModelSummary {
  id: string;
  provider: string;
  default: boolean;
  window?: number | null;
  price_in?: number | null;
  price_out?: number | null;
}

export interface RoleSummary {
  role: string;
  model: string;
  from: string;
  work: string;
}

export interface NewMessage {
  text: string;
  delivery?: MessageDelivery;
  dry_run?: boolean;
  attachments?: EncodedAttachment[];
}

export const sendMessage = (id: string, message: NewMessage, key?: string): Promise<unknown> => postJson(apiPath`sessions/${id}/messages`, message, key);
export const retryTurn = (id: string, turn: string, text = ""): Promise<unknown> => postJson(apiPath`sessions/${id}/retry`, { turn, text });
export const withdrawMessage = (id: string, message: string): Promise<void> => sendDelete(apiPath`sessions/${id}/messages/${message}`);
export const controlSession = (id: string, what: "cancel" | "pause" | "resume" | "drop" | "compact" | "restore" | "unarchive"): Promise<unknown> =>
  postJson(apiPath`sessions/${id}` + `/${what}`);
export const updateSession = (id: string, what: Record<string, unknown>): Promise<unknown> => patchJson(apiPath`sessions/${id}`, what);
export const forkSession = (id: string, seq: number | null): Promise<{ id: string }> => postJson(apiPath`sessions/${id}/fork`, { at: seq });
export const planUndo = (id: string, turn: string, force: boolean, redo: boolean): Promise<UndoPlan> =>
  getJson(apiPath`sessions/${id}/undo?turn=${turn}&force=${String(force)}&redo=${String(redo)}`);
export const undoTurn = (id: string, turn: string, force: boolean, redo: boolean): Promise<unknown> =>
  postJson(apiPath`sessions/${id}/undo`, { turn, force, redo });
export const listTurnChanges = (id: string, turn: string): Promise<TurnChanges[]> => getItems(apiPath`sessions/${id}/changes?turn=${turn}`);

export interface QuestionAnswer {
  id: string;
  answer: string;
  reason?: string;
  arguments?: Record<string, unknown>;
}

export const answerQuestions = (id: string, answers: QuestionAnswer[]): Promise<unknown> => postJson(apiPath`sessions/${id}/answers`, { answers: answers.map(({ id: question, ...said }) => ({ question, ...said })) });

export async function listModels(): Promise<ModelSummary[]> {
  const found: ModelSummary[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { items: ModelSummary[]; next: string | null } = await getJson(apiPath`models?limit=1000&cursor=${cursor}`);
    found.push(...page.items);
    cursor = page.next;
  }
  return found;
}

export const listRoles = (id: string): Promise<RoleSummary[]> => getItems(apiPath`roles?session=${id}`);
