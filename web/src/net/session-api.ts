/** What can be done to a session, each as one request. */

import { at, get, list, patch, post, remove } from "./api";
import type { Sent } from "../chat/composer/attachments";

export type Delivery = "steer" | "follow";

export interface Left {
  path: string;
  why: string;
}

export interface FileChanged {
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
  files: FileChanged[];
  left: Left[];
}

export interface TurnChanges {
  turn: string;
  files: FileChanged[];
  gaps?: string[];
}

export interface ModelRow {
  id: string;
  provider: string;
  default: boolean;
  window?: number | null;
  price_in?: number | null;
  price_out?: number | null;
}

export interface RoleRow {
  role: string;
  model: string;
  from: string;
  work: string;
}

export interface Message {
  text: string;
  delivery?: Delivery;
  dry_run?: boolean;
  attachments?: Sent[];
}

export const send = (id: string, message: Message, key?: string): Promise<unknown> => post(at`sessions/${id}/messages`, message, key);
export const retry = (id: string, turn: string, text = ""): Promise<unknown> => post(at`sessions/${id}/retry`, { turn, text });
export const withdraw = (id: string, message: string): Promise<void> => remove(at`sessions/${id}/messages/${message}`);
export const act = (id: string, what: "cancel" | "pause" | "resume" | "drop" | "compact" | "restore" | "unarchive"): Promise<unknown> =>
  post(at`sessions/${id}` + `/${what}`);
export const change = (id: string, what: Record<string, unknown>): Promise<unknown> => patch(at`sessions/${id}`, what);
export const fork = (id: string, seq: number | null): Promise<{ id: string }> => post(at`sessions/${id}/fork`, { at: seq });
export const planUndo = (id: string, turn: string, force: boolean, redo: boolean): Promise<UndoPlan> =>
  get(at`sessions/${id}/undo?turn=${turn}&force=${String(force)}&redo=${String(redo)}`);
export const undo = (id: string, turn: string, force: boolean, redo: boolean): Promise<unknown> =>
  post(at`sessions/${id}/undo`, { turn, force, redo });
export const changes = (id: string, turn: string): Promise<TurnChanges[]> => list(at`sessions/${id}/changes?turn=${turn}`);

export interface Said {
  id: string;
  answer: string;
  reason?: string;
  arguments?: Record<string, unknown>;
}

export const answer = (id: string, answers: Said[]): Promise<unknown> => post(at`sessions/${id}/answers`, { answers: answers.map(({ id: question, ...said }) => ({ question, ...said })) });

export async function models(): Promise<ModelRow[]> {
  const found: ModelRow[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { items: ModelRow[]; next: string | null } = await get(at`models?limit=1000&cursor=${cursor}`);
    found.push(...page.items);
    cursor = page.next;
  }
  return found;
}

export const roles = (id: string): Promise<RoleRow[]> => list(at`roles?session=${id}`);
