/** Puts a text where it can be pasted from; tells whether that worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS a page from another machine has no clipboard: the old way still works.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const back = document.activeElement;
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "hidden";
  // A dialog keeps what is outside of it from being selected.
  (back?.closest("dialog") ?? document.body).append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (back instanceof HTMLElement) back.focus();
  return done;
}
