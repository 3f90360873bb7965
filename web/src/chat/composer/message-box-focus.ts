/** Where the focus goes by itself: into the message box, unless somebody is about to use something else. */

/** On a touch screen the focus brings up the keyboard: there it is taken by a finger only. */
const touch = matchMedia("(hover: none), (pointer: coarse)");

export function focusMessageBox(box: HTMLElement): void {
  if (!touch.matches) box.focus({ preventScroll: true });
}

/** Whether nobody misses the focus: nothing is open over the page, and nothing is being typed. */
export function isFocusFree(): boolean {
  const at = document.activeElement;
  return !document.querySelector("dialog[open]") && !at?.matches("input, textarea, select, [contenteditable]");
}

/** Whether something stands in what is typed into. */
export function hasTypedText(at: Element | null): boolean {
  return (at instanceof HTMLTextAreaElement || at instanceof HTMLInputElement) && at.value !== "";
}
