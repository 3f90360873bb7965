/** The files that will go with a message. */

import { type Attached, attached, room } from "./attachments";

export class Files {
  list = $state.raw<Attached[]>([]);

  /** Takes files in; what it returns are the reasons why some were not. */
  async add(files: Iterable<File>): Promise<string[]> {
    const why: string[] = [];
    for (const file of files) {
      const made = await attached(file);
      const full = typeof made === "string" ? made : room(this.list, made);
      if (typeof made === "string" || full) why.push(full);
      else this.list = [...this.list, made.kind === "picture" ? { ...made, url: URL.createObjectURL(file) } : made];
    }
    return why;
  }

  remove(file: Attached): void {
    if (file.url) URL.revokeObjectURL(file.url);
    this.list = this.list.filter((one) => one.id !== file.id);
  }

  /** Gives them away. */
  take(): Attached[] {
    const taken = this.list;
    this.list = [];
    return taken;
  }

  /** Takes back what was given away. */
  put(files: readonly Attached[]): void {
    this.list = [...files, ...this.list];
  }

}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- which ones there are is nothing to be drawn
const kept = new Map<string, Files>();

/** The files chosen for a session's next message, empty for a new session's: they stay while one looks elsewhere. */
export function filesOf(session: string): Files {
  const known = kept.get(session) ?? new Files();
  kept.set(session, known);
  return known;
}
