import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** So many elements are new in a frame. */
const most = 100;

/**
 * Of the keys of a list those that are shown by now. What is new comes next to what is there, or at the end, a little in each
 * frame, so that no frame takes long. The list is the same one until it says something else.
 */
export function useGradually(keys: readonly string[], weight: (key: string) => number): readonly string[] {
  const there = useRef<ReadonlySet<string>>(new Set());
  const last = useRef<readonly string[]>([]);
  const [, again] = useState(0);
  const known = (key: string) => there.current.has(key);
  let to = keys.findLastIndex(known) + 1;
  let from = to === 0 ? keys.length : keys.findIndex(known);
  if (to === 0) to = keys.length;
  let room = most;
  for (; to < keys.length && room > 0; to++) room -= weight(keys[to] as string);
  for (; from > 0 && room > 0; from--) room -= weight(keys[from - 1] as string);
  const now = keys.slice(from, to);
  const old = last.current;
  const shown = old.length === now.length && old.every((key, i) => key === now[i]) ? old : now;
  const all = shown.length === keys.length;
  useLayoutEffect(() => {
    if (last.current !== shown) there.current = new Set(shown);
    last.current = shown;
    if (all) return;
    const next = () => again((n) => n + 1);
    if (document.hidden) {
      const timer = setTimeout(next);
      return () => clearTimeout(timer);
    }
    const frame = requestAnimationFrame(next);
    return () => cancelAnimationFrame(frame);
  });
  return shown;
}
