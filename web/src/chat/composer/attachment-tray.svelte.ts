/** The files that will go with a message. */

import { type Attachment, explainNoRoom, readAttachment } from "./attachments";

export class AttachmentTray {
  list = $state.raw<Attachment[]>([]);

  /** Takes files in; what it returns are the reasons why some were not. */
  async add(files: Iterable<File>): Promise<string[]> {
    const why: string[] = [];
    for (const file of files) {
      const made = await readAttachment(file);
      const full = typeof made === "string" ? made : explainNoRoom(this.list, made);
      if (typeof made === "string" || full) why.push(full);
      else this.list = [...this.list, made.kind === "picture" ? { ...made, url: URL.createObjectURL(file) } : made];
    }
    return why;
  }

  remove(file: Attachment): void {
    if (file.url) URL.revokeObjectURL(file.url);
    this.list = this.list.filter((one) => one.id !== file.id);
  }

  /** Gives them away. */
  takeAll(): Attachment[] {
    const taken = this.list;
    this.list = [];
    return taken;
  }

  /** Takes back what was given away. */
  putBack(files: readonly Attachment[]): void {
    this.list = [...files, ...this.list];
  }

}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- which ones there are is nothing to be drawn
const trays = new Map<string, AttachmentTray>();

/** The files chosen for a session's next message, empty for a new session's: they stay while one looks elsewhere. */
export function attachmentTrayOf(session: string): AttachmentTray {
  const known = trays.get(session) ?? new AttachmentTray();
  trays.set(session, known);
  return known;
}
