/** What somebody has open beside a conversation: a notice, a dialog. Nothing of it outlives the page. */

export interface Notice {
  title: string;
  lines: string[];
}

export type Opened =
  | { kind: "none" }
  | { kind: "undo"; turn: string; redo: boolean }
  | { kind: "again"; turn: string; text: string; later: number }
  | { kind: "model" }
  | { kind: "roles" }
  | { kind: "budget" }
  | { kind: "trust" }
  | { kind: "unsafe" };

/** The box one writes in. */
export interface Box {
  empty(): boolean;
  put(text: string): void;
  focus(): void;
}

export class Desk {
  notice = $state.raw<Notice | null>(null);
  opened = $state.raw<Opened>({ kind: "none" });
  /** The message that is being changed. */
  editing = $state(0);
  /** Which calls were opened or closed by hand. */
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- it is asked for when a row is drawn, and by nobody else
  readonly toggled = new Map<string, boolean>();

  /** What was begun to be written to a question, by its id; and which ones were answered from here. */
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing of it is drawn
  readonly begun = new Map<string, string>();
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing of it is drawn
  readonly answered = new Set<string>();
  /** How often an answer from here came too late. */
  late = $state(0);
  box: Box | null = null;

  constructor(readonly session: string) {}

  say(title: string, ...lines: string[]): void {
    this.notice = { title, lines };
  }

  /** Puts words into the box, before what stands there. */
  write(text: string): void {
    this.box?.put(text);
  }

  open(what: Opened): void {
    this.opened = what;
  }

  close(): void {
    this.opened = { kind: "none" };
  }
}
