import type { Route } from "../route.ts";

/** What a change of the route goes to: views and filters of a room are not another place. */
export const placeOf = (r: Route): string => ("id" in r && r.id ? `${r.room} ${r.id}` : r.room);

/** Whether an element leaves the focus to the room that comes: it is gone, of the frame, or of a dialog. */
function leaves(e: Element | null): boolean {
  return !e || e === document.body || e.id === "main" || e.closest("nav, dialog") !== null;
}

/**
 * Takes the focus into a room that has just been opened: to the field of a new session, and elsewhere to the heading. A reader who is
 * in a list stays there. The heading of a room whose code or data is still on its way is waited for, until the returned function is called.
 */
export function arrive(from: string, to: string): () => void {
  const wanted = from === "playground" && to.startsWith("sessions ") ? "main .composer textarea" : "main h1";
  const take = (): boolean => {
    if (!leaves(document.activeElement)) return true;
    const at = document.querySelector<HTMLElement>(wanted);
    if (!at) return false;
    if (at.tagName === "H1") at.tabIndex = -1;
    at.focus({ preventScroll: true });
    return document.activeElement === at;
  };
  if (take()) return () => {};
  const look = new MutationObserver(() => take() && look.disconnect());
  look.observe(document.getElementById("main") as Element, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ["disabled"],
  });
  return () => look.disconnect();
}
