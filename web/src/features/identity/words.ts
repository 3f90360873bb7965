/** What the identity files say. */

export const identityWords = {
  parts: { soul: "Soul", rules: "Rules", deployment: "Deployment" } as Record<string, string>,
  list: "Files",
  notThere: "There is none yet. What is not there costs nothing.",
  preview: "Preview",
  write: "Write",
  length: (count: number, most: number) => `${count} of ${most} characters`,
  long: "It is too long: sessions would not be told all of it.",
  remove: "Remove this file",
  removed: "Removed. It can be restored from the earlier versions.",
  told: "A session is told of a change before its next turn.",
  nothing: "Nothing to preview.",
} as const;
