/** What somebody has open beside a conversation: a notice, a dialog. Nothing of it outlives the page. */

export interface Notice {
  title: string;
  lines: string[];
}

export type Opened =
  | { kind: "none" }
  | { kind: "undo"; turn: string; redo: boolean }
  | { kind: "model" }
  | { kind: "roles" }
  | { kind: "budget" }
  | { kind: "trust" }
  | { kind: "unsafe" };

export class Desk {
  notice = $state.raw<Notice | null>(null);
  opened = $state.raw<Opened>({ kind: "none" });
  /** The message that is being changed. */
  editing = $state(0);
  /** Which calls were opened or closed by hand. */
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- it is asked for when a row is drawn, and by nobody else
  readonly toggled = new Map<string, boolean>();

  constructor(readonly session: string) {}

  say(title: string, ...lines: string[]): void {
    this.notice = { title, lines };
  }

  open(what: Opened): void {
    this.opened = what;
  }

  close(): void {
    this.opened = { kind: "none" };
  }
}
