/** Tells when something in a workspace may have changed: a session that works there did something, or somebody looks again. */

import { app } from "../../state/app-state.svelte";

const PAUSE = 700;

/**
 * To be called while a component is made. What it calls is called at most about once a second; with `every`, also after
 * so many milliseconds while somebody looks: nobody tells of what other programs do to a file.
 */
export function watchWorkspace(workspace: () => string, look: () => void, every = 0): void {
  // Whatever an agent does there adds to the log of its session.
  const facts = $derived([...app.sessions.values()].reduce((sum, row) => (row.workspace === workspace() ? sum + row.seq : sum), 0));
  let timer = 0;
  let known = -1;
  const scheduleLook = (): void => {
    if (timer || document.hidden) return;
    timer = window.setTimeout(() => {
      timer = 0;
      look();
    }, PAUSE);
  };
  $effect(() => {
    if (known >= 0 && facts !== known) scheduleLook();
    known = facts;
  });
  $effect(() => {
    const lookIfVisible = (): void => void (document.hidden || scheduleLook());
    addEventListener("focus", lookIfVisible);
    document.addEventListener("visibilitychange", lookIfVisible);
    const clock = every ? setInterval(lookIfVisible, every) : 0;
    return () => {
      removeEventListener("focus", lookIfVisible);
      document.removeEventListener("visibilitychange", lookIfVisible);
      clearInterval(clock);
      clearTimeout(timer);
    };
  });
}
