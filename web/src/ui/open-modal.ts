/** Opens a dialog over the page; closed again, it gives the focus back to where it was. */
export function openModal(box: HTMLDialogElement): { destroy(): void } {
  const before = document.activeElement;
  box.showModal();
  return {
    destroy: () => {
      box.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    },
  };
}
