/** What the app knows of a session: made of its events alone, by `fold.ts`. */

import type {
  Asked,
  FileChange,
  Image,
  AccessSummary,
  SessionCreated,
  PlanStep,
  SylphEvent,
  ErrorReport,
  TurnEnded,
  Usage,
} from "./events";

export type SessionModeName = SessionCreated["mode"];
export type OutcomeName = TurnEnded["outcome"];
export type ToolCallState = "called" | "waiting" | "refused" | "running" | "asking" | "done" | "failed" | "stopped";

/** A call of a tool, from the wish to its result. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
  state: ToolCallState;
  seq: number;
  began: number;
  ended: number;
  decision: string;
  reason: string;
  by: string;
  effect: string;
  risk: string;
  reach: AccessSummary;
  output: string;
  /** What it prints while it runs; the result takes its place. */
  live: string;
  exit: number | null;
  trouble: ErrorReport | null;
  ms: number;
  whole: boolean;
  wholeBytes: number;
  dry: boolean;
  images: Image[];
  changes: FileChange[];
  /** What it may have changed that cannot be put back. */
  gaps: string[];
  /** Its changes were put back. */
  undone: boolean;
}

/** Something a person said. */
export interface UserMessage {
  kind: "user";
  seq: number;
  ts: number;
  id: string;
  text: string;
  images: Image[];
  actor: string;
  steered: boolean;
  /** The work was stopped before it heard of it. */
  lost: boolean;
}

/** Something the model said. */
export interface AssistantMessage {
  kind: "assistant";
  seq: number;
  ts: number;
  model: string;
  text: string;
  reasoning: string;
  usage: Usage;
  cost: number | null;
  ms: number;
  firstMs: number;
  /** It ended before it was at its end. */
  cut: boolean;
}

export interface ToolCallItem {
  kind: "tool";
  seq: number;
  ts: number;
  call: ToolCall;
}

/** Something Sylph has to say: a failure, a fallback, a summary made, a file put back. */
export interface SessionNote {
  kind: "note";
  seq: number;
  ts: number;
  tone: "plain" | "warn" | "bad";
  about: string;
  text: string;
  /** The event itself, for whoever tells it in words. */
  fact: SylphEvent;
}

export type TurnItem = UserMessage | AssistantMessage | ToolCallItem | SessionNote;

/** A question with its answer, once there is one. */
export interface SessionQuestion {
  seq: number;
  ts: number;
  asked: Asked;
  answer: string;
  reason: string;
  by: string;
  /** The credential it came with. */
  via: string;
  open: boolean;
  turn: string;
}

/** What arrives piece by piece, until the fact that holds it whole. */
export interface LiveAnswer {
  text: string;
  reasoning: string;
  args: { name: string; text: string }[];
  progress: string;
}

/** What happened between a message and the end of the work on it; `id` is empty for what lies between turns. */
export interface Turn {
  key: string;
  id: string;
  first: number;
  began: number;
  ended: number;
  /** The last fact of it; 0 while it is not over. */
  last: number;
  outcome: OutcomeName | "";
  trouble: ErrorReport | null;
  retryOf: string;
  /** The model no longer sees it: it was replaced. */
  rewound: boolean;
  rounds: number;
  cost: number;
  items: TurnItem[];
}

export interface QueuedMessage {
  id: string;
  text: string;
  follow: boolean;
  images: Image[];
}

export interface Session {
  id: string;
  seq: number;
  title: string;
  workspace: string;
  model: string;
  mode: SessionModeName;
  sandbox: boolean;
  label: string;
  parent: string;
  deleted: boolean;
  archived: boolean;
  pinned: boolean;
  /** How far a person has seen it. */
  seen: number;
  state: string;
  updated: number;
  turns: Turn[];
  questions: Map<string, SessionQuestion>;
  calls: Map<string, ToolCall>;
  queue: QueuedMessage[];
  /** The undo that can be taken back. */
  redo: string;
  plan: PlanStep[];
  roles: Record<string, string>;
  usage: Required<Usage>;
  /** Micro-dollars. */
  cost: number;
  /** Whether some of it was used at a price nobody knows. */
  unpriced: boolean;
  budget: number | null;
  /** Tokens of the last prompt, and what the model can take. */
  context: number;
  window: number;
  live: LiveAnswer;
}

export function newSession(id: string): Session {
  return {
    id,
    seq: 0,
    title: "",
    workspace: "",
    model: "",
    mode: "ask",
    sandbox: true,
    label: "",
    parent: "",
    deleted: false,
    archived: false,
    pinned: false,
    seen: 0,
    state: "idle",
    updated: 0,
    turns: [],
    questions: new Map(),
    calls: new Map(),
    queue: [],
    redo: "",
    plan: [],
    roles: {},
    usage: { input: 0, output: 0, cached: 0, reasoning: 0, written: 0 },
    cost: 0,
    unpriced: false,
    budget: null,
    context: 0,
    window: 0,
    live: emptyLiveAnswer(),
  };
}

export function emptyLiveAnswer(): LiveAnswer {
  return { text: "", reasoning: "", args: [], progress: "" };
}
