// Made by scripts/reference from the declarations in src/sylph/core. Not to be edited.
// A field with a default is left out on the wire where it has it: here it is optional.

/** The first fact of every session: where it works, how, and with what. Sessions of one `label` share a budget. `by` names who made it where that was somebody at the server without `admin`: their sessions open no folder. */
export interface SessionCreated {
  workspace: string;
  model: string;
  mode: "ask" | "auto_noselfmod" | "plan" | "sandbox" | "trust";
  title?: string;
  prompt?: number;
  sylph?: string;
  sandbox?: boolean;
  label?: string;
  by?: string;
}

/** The session has a new title. */
export interface SessionRenamed {
  title: string;
}

/** All before this was copied from `parent`, up to and with its fact `at`; from here on the two differ. */
export interface SessionForked {
  parent: string;
  at: number;
  root: string;
}

/** The session is in the trash: not listed, still readable, restorable. */
export type SessionDeleted = object;

/** The session is back from the trash. */
export type SessionRestored = object;

/** The session was put aside, or taken up again: lists leave it out while it is. */
export interface SessionArchived {
  archived: boolean;
}

/** The session is kept at hand, or no longer. */
export interface SessionPinned {
  pinned: boolean;
}

/** A person has seen the session up to and with its fact `upto`. */
export interface SessionSeen {
  upto: number;
}

/** Something secret was taken out of earlier facts. Their commitments stay, so the chain still holds. `facts` and `blobs` vouch for what stands there now: the hash of the new data by number, of the new output by name. */
export interface SessionErased {
  facts: Record<string, string>;
  blobs?: Record<string, string>;
  why?: string;
}

/** The permission mode changed. */
export interface SessionMode {
  mode: "ask" | "auto_noselfmod" | "plan" | "sandbox" | "trust";
  was: "ask" | "auto_noselfmod" | "plan" | "sandbox" | "trust";
}

/** The user has switched the sandbox of this session's commands off, or on again. */
export interface SessionSandbox {
  on: boolean;
}

/** The session thinks with another model from now on. */
export interface SessionModel {
  model: string;
  was: string;
}

/** Another model does the work of a role from now on; an empty one leaves it to the configuration. */
export interface SessionRole {
  role: string;
  model: string;
  was?: string;
}

/** Somebody said something. Once this is written the message is kept; `key` makes a repeated send one message. The turn of a `dry_run` shows what it would do and changes nothing. `form` is how the answer is wanted. */
export interface InputReceived {
  id: string;
  text: string;
  delivery?: "follow" | "start" | "steer";
  key?: string;
  dry_run?: boolean;
  images?: Image[];
  form?: AnswerFormat | null;
}

/** A picture or a document (`media` tells which) by its name: the bytes are kept with the log under `digest`. */
export interface Image {
  digest: string;
  media: string;
  bytes?: number;
  name?: string;
}

/** How the answer to a message is wanted, where it matters. */
export interface AnswerFormat {
  schema?: string;
  tokens?: number | null;
  effort?: string;
}

/** A steering message reached the running turn: from here on the model sees it. */
export interface InputDelivered {
  id: string;
}

/** A waiting message was taken back before it was delivered. */
export interface InputCancelled {
  id: string;
}

/** A turn begins with the message `input`. A retry names the turn it replaces. */
export interface TurnStarted {
  input: string;
  profile?: string;
  retry_of?: string;
}

/** The process died in the middle of this turn; it goes on from the log. `attempt` counts these. */
export interface TurnResumed {
  attempt: number;
  open_calls?: string[];
}

/** The one end of a turn. */
export interface TurnEnded {
  outcome: "budget" | "cancelled" | "failed" | "finished" | "interrupted";
  rounds?: number;
  ms?: number;
  trouble?: ErrorReport | null;
}

/** An error as data: what every door shows and every log keeps. */
export interface ErrorReport {
  kind: string;
  message: string;
  details?: Record<string, string>;
  next?: string[];
}

/** The session went from one state to another; `event` is the edge it took. */
export interface StateChanged {
  to: string;
  was: string;
  event: string;
}

/** The model no longer sees what came from fact `to` on. Nothing is deleted: the log keeps it all. */
export interface HistoryRewound {
  to: number;
  why?: string;
}

/** Something Sylph tells the model: the workspace, the date, a mode change. Appended, never edited into the head. */
export interface ContextAdded {
  topic: string;
  text: string;
}

/** The model sees this instead of what came before fact `upto`: the person's own `words`, the `ledger` of what was done, and a model's `summary`. The originals stay in the log. */
export interface CompactionMade {
  upto: number;
  summary: string;
  words: string[];
  ledger: string[];
  why: string;
  chunks: number;
  messages: number;
  tokens_before: number;
  tokens_after: number;
}

/** Summarising did not work; nothing was dropped. */
export interface CompactionFailed {
  why: string;
  trouble: ErrorReport;
}

/** A request goes to a model. `digest` is a hash of the prompt's bytes, so that a replay can be held against it. `head` are hashes of what never changes in it, the system text and the tools, `tail` is one of its messages; `window` is what the model was taken to hold at that time, 0 where nobody knew. Where a budget counts, `reserved` micro-dollars were put aside for it. Its answer may have `answer` tokens, where that is known; `limited` tells that the service was told so, for the sake of a budget. `chat_only` tells that it got no tools, since it cannot be trusted with them. `kept` is how many bytes of the last request this one repeats, which a service's cache can have; where that is not all of them, `missed` says what changed: `first`, `model`, `system`, `tools`, `compaction`, `retry` or `history`. */
export interface ModelRequested {
  model: string;
  round: number;
  role?: string;
  messages?: number;
  bytes?: number;
  digest?: string;
  head?: string;
  tail?: string;
  window?: number;
  kept?: number | null;
  missed?: string;
  reserved?: number | null;
  answer?: number | null;
  limited?: boolean;
  chat_only?: boolean;
}

/** A model's whole answer to one request. Its calls follow as `tool.called`. */
export interface ModelResponded {
  model: string;
  text: string;
  finish: string;
  reasoning?: string;
  calls?: number;
  usage?: Usage;
  cost?: number | null;
  ms?: number;
  first_ms?: number;
  role?: string;
  native?: string;
}

/** Tokens as the provider counted them; 0 where it did not say. */
export interface Usage {
  input?: number;
  output?: number;
  cached?: number;
  reasoning?: number;
  written?: number;
}

/** A request did not work. `retry_ms` says when the next try comes; without it there is none. Where a budget counts and the service may charge for it all the same, `usage` and `cost` are the most it can be. `turn` is the earlier turn in which it was asked, where that is found out only now. */
export interface ModelFailed {
  model: string;
  trouble: ErrorReport;
  attempt: number;
  retry_ms?: number | null;
  partial?: string;
  role?: string;
  usage?: Usage | null;
  cost?: number | null;
  turn?: string;
}

/** A model did not answer, and another one takes its place until the turn ends, or nobody does (`to` is empty). `passed` could not have taken all of it over: the tools, the images, the length. */
export interface ModelFellBack {
  model: string;
  to: string;
  trouble: ErrorReport;
  role?: string;
  passed?: Record<string, string>;
}

/** The model asks for a call. `arguments` is its JSON as it came. */
export interface ToolCalled {
  call: string;
  name: string;
  arguments: string;
}

/** Whether a call may run, who said so, and why. `digest` binds it to the arguments, and `reach` tells what they would touch; `arguments` is what the person made of them, where they did. `grants` was allowed for the rest of the session, `remembered` for good. */
export interface ToolDecided {
  call: string;
  decision: "allow" | "ask" | "deny";
  reason: string;
  by: string;
  effect: "external" | "read" | "self" | "write";
  risk: "caution" | "dangerous" | "safe";
  digest?: string;
  reach?: AccessSummary;
  arguments?: string;
  grants?: PermissionRule[];
  remembered?: PermissionRule[];
}

/** What a call would touch, as far as its arguments tell: real paths, hosts, simple commands. */
export interface AccessSummary {
  reads?: string[];
  writes?: string[];
  hosts?: string[];
  commands?: string[];
  outside?: boolean;
  why?: string;
}

/** What to do about calls that fit all that is named here; what is not named fits everything. */
export interface PermissionRule {
  decision: "allow" | "ask" | "deny";
  tool?: string;
  path?: string;
  command?: string;
  host?: string;
  until?: string;
  why?: string;
  digest?: string;
}

/** What was allowed for the rest of the session is so no more. */
export interface GrantRevoked {
  rule: PermissionRule;
}

/** A call runs from here on: on the disk before its effect can be. `recourse` tells how the outcome can be learned after a crash, `foreseen` what it will be recognised by. */
export interface ToolStarted {
  call: string;
  effect: "external" | "read" | "self" | "write";
  recourse: "by_content" | "by_key" | "by_probe" | "pure" | "unknowable";
  foreseen?: Record<string, string>;
}

/** What a call came to. `output` is what the model sees; `whole` names the full output where that was longer. `ms` is the time it ran, waiting for a person not counted; a `dry` call was only shown. `images` are kept like whole outputs. */
export interface ToolFinished {
  call: string;
  ok: boolean;
  output: string;
  exit?: number | null;
  trouble?: ErrorReport | null;
  ms?: number;
  whole?: string;
  whole_bytes?: number;
  dry?: boolean;
  images?: Image[];
}

/** The turn waits for a person. The answer comes back as a command, then as the fact `answered`. An approval can be about several `calls` of one kind. `grants` is what its choice `session` would allow, `rules` what `always` would remember; `effect`, `risk` and `reach` tell what the call would do. */
export interface Asked {
  id: string;
  kind: "approval" | "question";
  question: string;
  choices?: string[];
  free?: boolean;
  call?: string;
  detail?: string;
  calls?: string[];
  effect?: "external" | "read" | "self" | "write" | null;
  risk?: "caution" | "dangerous" | "safe" | null;
  reach?: AccessSummary;
  grants?: PermissionRule[];
  rules?: PermissionRule[];
}

/** A person's answer, or that none could be had (`by` is `nobody`). `arguments` is what they made of a call's. `via` is the name of the credential it came with, where that was not the owner's own terminal. */
export interface Answered {
  id: string;
  answer: string;
  reason?: string;
  by?: string;
  arguments?: string;
  via?: string;
}

/** The agent's checklist, whole, as it is now. */
export interface PlanUpdated {
  steps: PlanStep[];
}

/** One line of the plan. */
export interface PlanStep {
  text: string;
  status?: "doing" | "done" | "dropped" | "pending";
}

/** What a call changed in the workspace. `gaps` tells what it changed, or may have, that cannot be undone. With a `doubt` it is not sure that the call did it: Sylph was stopped meanwhile, and somebody else may have. */
export interface FilesChanged {
  call: string;
  changes?: FileChange[];
  gaps?: string[];
  doubt?: string;
}

/** A path in the workspace, what was there, and what is there now; None for nothing. */
export interface FileChange {
  path: string;
  before?: FileState | null;
  after?: FileState | null;
}

/** What there is at a path. A file too large to be kept has no `digest`, and is known by size and `mtime` (ns). */
export interface FileState {
  kind: "file" | "folder" | "link" | "other";
  mode?: number;
  size?: number;
  digest?: string;
  target?: string;
  mtime?: number;
}

/** Files are put back from here on. Each step goes from what is there now (`before`) to what was there (`after`). `calls` are those whose changes are undone, the first of them in `turn`; `redo` names the undo that is taken back. */
export interface UndoStarted {
  id: string;
  turn?: string;
  calls?: string[];
  steps?: FileChange[];
  left?: SkippedFile[];
  redo?: string;
}

/** A path that an undo did not touch, and why. */
export interface SkippedFile {
  path: string;
  why: string;
}

/** An undo is done: these paths are as they were, `left` are not. `resumed` if another process began it. */
export interface FilesRestored {
  undo: string;
  restored?: string[];
  left?: SkippedFile[];
  resumed?: boolean;
}

/** A message to a person is to be delivered on one `channel`. It is kept until it is confirmed or given up. Whoever gets it twice, because Sylph died before it was confirmed, knows it by the session's id and its own. */
export interface DeliveryRecorded {
  id: string;
  channel: string;
  title: string;
  text?: string;
  urgency?: "high" | "low" | "normal";
  why?: "asked" | "budget" | "ended" | "notify";
  call?: string;
}

/** A delivery is on its way from here on: on the disk before it can arrive. */
export interface DeliveryAttempted {
  id: string;
  attempt: number;
}

/** A delivery has arrived. What only has to be shown was not sent, and has no `attempt`. */
export interface DeliveryConfirmed {
  id: string;
  attempt?: number;
}

/** A delivery did not arrive. `retry_ms` says when the next try comes; without it, it is given up. */
export interface DeliveryFailed {
  id: string;
  attempt: number;
  trouble: ErrorReport;
  retry_ms?: number | null;
}

/** The person gave this session a cap of its own in micro-dollars; None takes it back, and the settings count. */
export interface SessionBudget {
  money?: number | null;
}

/** Four fifths of a budget are used up. `name` is the turn, session, tree, label, day or month it is about; money is in micro-dollars. */
export interface BudgetWarned {
  scope: "day" | "label" | "month" | "session" | "tree" | "turn";
  name: string;
  what: "money" | "rounds" | "seconds" | "tokens";
  used: number;
  cap: number;
}

/** A model was not asked: with the `need` of this call at the most, the budget could have been exceeded. `least` is what the shortest answer that is worth a call would have needed, `held` what other calls may still take, `window` what the model was taken to hold, 0 where unknown. `own` says that the session was given the cap itself. */
export interface BudgetStopped {
  scope: "day" | "label" | "month" | "session" | "tree" | "turn";
  name: string;
  what: "money" | "rounds" | "seconds" | "tokens";
  used: number;
  cap: number;
  need?: number;
  least?: number;
  held?: number;
  window?: number;
  own?: boolean;
}

/** An answer took more than the most that was reserved for it: the service counted otherwise than was foreseen. */
export interface BudgetExceeded {
  model: string;
  what: "money" | "rounds" | "seconds" | "tokens";
  reserved: number;
  used: number;
}

/** The next piece of the answer. */
export interface TextDelta {
  text: string;
}

/** The next piece of the model's reasoning. */
export interface ReasoningDelta {
  text: string;
}

/** The next piece of a call's arguments, while the model still writes them. */
export interface ArgsDelta {
  index: number;
  name: string;
  text: string;
}

/** What a running call prints. */
export interface ToolOutput {
  call: string;
  text: string;
}

/** Something takes its time; this says what. */
export interface Progress {
  text: string;
}

/** All that is being written, for a reader that came late or has missed some: it takes the place of all pieces before it. `outputs` is what each running call has printed, or the end of that. */
export interface LiveSnapshot {
  text?: string;
  reasoning?: string;
  calls?: PartialCall[];
  outputs?: Record<string, string>;
  progress?: string;
}

/** The arguments of a call, as far as the model has written them. */
export interface PartialCall {
  name: string;
  text: string;
}

/** The session cannot go on: its log cannot be written, so this cannot be a fact. */
export interface SessionFailed {
  trouble: ErrorReport;
}

/** The session was removed for good: nothing of it is there any more, and nothing follows. */
export type SessionPurged = object;

/** This reader was too slow: `missed` signals were dropped. Facts never are; they follow from the log. */
export interface Lagged {
  missed: number;
}

export interface Bodies {
  "session.created": SessionCreated;
  "session.renamed": SessionRenamed;
  "session.forked": SessionForked;
  "session.deleted": SessionDeleted;
  "session.restored": SessionRestored;
  "session.archived": SessionArchived;
  "session.pinned": SessionPinned;
  "session.seen": SessionSeen;
  "session.erased": SessionErased;
  "session.mode": SessionMode;
  "session.sandbox": SessionSandbox;
  "session.model": SessionModel;
  "session.role": SessionRole;
  "input.received": InputReceived;
  "input.delivered": InputDelivered;
  "input.cancelled": InputCancelled;
  "turn.started": TurnStarted;
  "turn.resumed": TurnResumed;
  "turn.ended": TurnEnded;
  "state.changed": StateChanged;
  "history.rewound": HistoryRewound;
  "context.added": ContextAdded;
  "compaction.made": CompactionMade;
  "compaction.failed": CompactionFailed;
  "model.requested": ModelRequested;
  "model.responded": ModelResponded;
  "model.failed": ModelFailed;
  "model.fell_back": ModelFellBack;
  "tool.called": ToolCalled;
  "tool.decided": ToolDecided;
  "grant.revoked": GrantRevoked;
  "tool.started": ToolStarted;
  "tool.finished": ToolFinished;
  "asked": Asked;
  "answered": Answered;
  "plan.updated": PlanUpdated;
  "files.changed": FilesChanged;
  "undo.started": UndoStarted;
  "files.restored": FilesRestored;
  "delivery.recorded": DeliveryRecorded;
  "delivery.attempted": DeliveryAttempted;
  "delivery.confirmed": DeliveryConfirmed;
  "delivery.failed": DeliveryFailed;
  "session.budget": SessionBudget;
  "budget.warned": BudgetWarned;
  "budget.stopped": BudgetStopped;
  "budget.exceeded": BudgetExceeded;
  "delta.text": TextDelta;
  "delta.reasoning": ReasoningDelta;
  "delta.args": ArgsDelta;
  "tool.output": ToolOutput;
  "progress": Progress;
  "live": LiveSnapshot;
  "session.failed": SessionFailed;
  "session.purged": SessionPurged;
  "lagged": Lagged;
}

export interface Envelope {
  v: number;
  session: string;
  seq: number;
  turn: string;
  ts: number;
  actor: string;
  cause: number;
  hash: string;
}

export type Wire = keyof Bodies;
export type SylphEvent = { [W in Wire]: Envelope & { type: W; data: Bodies[W] } }[Wire];
