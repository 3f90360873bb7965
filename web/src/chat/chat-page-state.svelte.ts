/** What somebody has open beside a conversation: a notice, a dialog. Nothing of it outlives the page. */

export interface ChatNotice {
  title: string;
  lines: string[];
}

export type OpenDialog =
  | { kind: "none" }
  | { kind: "undo"; turn: string; redo: boolean }
  | { kind: "again"; turn: string; text: string; later: number }
  | { kind: "model" }
  | { kind: "roles" }
  | { kind: "budget" }
  | { kind: "trust" }
  | { kind: "unsafe" };

/** The box one writes in. */
export interface MessageBox {
  empty(): boolean;
  put(text: string): void;
  focus(): void;
}

export class ChatPageState {
  notice = $state.raw<ChatNotice | null>(null);
  dialog = $state.raw<OpenDialog>({ kind: "none" });
  /** The message that is being changed. */
  editedMessage = $state(0);
  /** Which calls were opened or closed by hand. */
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- it is asked for when a row is drawn, and by nobody else
  readonly toggledCalls = new Map<string, boolean>();

  /** What was begun to be written to a question, by its id; and which ones were answered from here. */
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing of it is drawn
  readonly draftAnswers = new Map<string, string>();
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing of it is drawn
  readonly answeredHere = new Set<string>();
  /** How often an answer from here came too late. */
  lateAnswers = $state(0);
  messageBox: MessageBox | null = null;

  constructor(readonly sessionId: string) {}

  showNotice(title: string, ...lines: string[]): void {
    this.notice = { title, lines };
  }

  /** Puts words into the box, before what stands there. */
  prependText(text: string): void {
    this.messageBox?.put(text);
  }

  openDialog(what: OpenDialog): void {
    this.dialog = what;
  }

  closeDialog(): void {
    this.dialog = { kind: "none" };
  }
}
