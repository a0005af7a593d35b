import { signal } from "@preact/signals";
import { nextTheme, nextZone } from "./app.ts";
import { choose, compareChosen } from "./model/compare.ts";
import { answerKey, Hold } from "./parts/hold.ts";
import type { IconName } from "./parts/icons.tsx";
import { go, room, route } from "./route.ts";
import { turn } from "./turns.ts";

type RoomName = Parameters<typeof room>[0];

/** The rooms, and the keys that go there after g. */
export const rooms: readonly { name: RoomName; key: string; icon: IconName; group: "build" | "operate" }[] = [
  { name: "playground", key: "p", icon: "play", group: "build" },
  { name: "sessions", key: "s", icon: "list", group: "build" },
  { name: "questions", key: "q", icon: "hand", group: "build" },
  { name: "teams", key: "m", icon: "team", group: "build" },
  { name: "swarm", key: "w", icon: "swarm", group: "operate" },
  { name: "installation", key: "i", icon: "gear", group: "operate" },
];

/** What lies over the page. */
export const over = signal<"palette" | "keys" | "more" | undefined>(undefined);

/** What has been typed for the palette before it was there; undefined: nobody waits for it. */
let early: string | undefined;

/** Hands over what has been typed for the palette, which is there now or does not come. */
export function typedEarly(): string {
  const typed = early ?? "";
  early = undefined;
  return typed;
}

/** Keeps a key for the palette, and reports whether it is one for it. */
function keep(e: KeyboardEvent): boolean {
  if (early === undefined || e.ctrlKey || e.metaKey || e.altKey) return false;
  if (e.key === "Backspace") early = early.slice(0, -1);
  else if (e.key.length === 1) early += e.key;
  else return false;
  return true;
}

/** The keys that work in all rooms. None acts in a field, or with an open dialog. */
export function onKeys(): () => void {
  let going = 0;
  const press = (e: KeyboardEvent) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault();
      if (!document.querySelector("dialog[open]")) early ??= "";
      over.value = "palette";
      return;
    }
    if (keep(e)) {
      e.preventDefault();
      return;
    }
    const at = e.target as HTMLElement;
    const field = at.isContentEditable || /^(TEXTAREA|SELECT)$/.test(at.tagName) || (at instanceof HTMLInputElement && at.type !== "range");
    if (field || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.repeat && (e.key === "y" || e.key === "n")) return; // held
    hold.release();
    const to = Date.now() - going < 1500 ? rooms.find((x) => x.key === e.key) : undefined;
    going = e.key === "g" ? Date.now() : 0;
    if (to) go(room(to.name));
    else if (!act(e)) return;
    e.preventDefault();
  };
  const release = () => hold.release();
  const leave = new AbortController();
  addEventListener("keydown", press, leave);
  for (const end of ["keyup", "blur", "focusin", "pointerdown"]) addEventListener(end, release, leave);
  return () => {
    release();
    leave.abort();
  };
}

/** The session that is shown. */
function shownSession(): string | undefined {
  const r = route.value;
  return r.room === "sessions" ? r.id : undefined;
}

function act(e: KeyboardEvent): boolean {
  switch (e.key) {
    case "?":
      over.value = "keys";
      return true;
    case "/": {
      const field = document.querySelector<HTMLElement>("main [data-search], main textarea");
      field?.focus();
      return field !== null;
    }
    case "d":
      return compareChosen(shownSession());
    case "x": {
      const pick = document.activeElement?.closest("[data-question]")?.querySelector<HTMLElement>("[data-pick]");
      if (pick) {
        pick.click();
        return true;
      }
      const session = document.activeElement?.closest(".sessions") ? undefined : shownSession();
      if (session) choose(session);
      return session !== undefined || intoList(e);
    }
    case "j":
    case "k":
      return intoList(e);
    case "t":
      nextTheme();
      return true;
    case "z":
      nextZone();
      return true;
    case "[":
      turn(-1);
      return true;
    case "]":
      turn(1);
      return true;
    case "y":
    case "n":
      return answerWith(e.key);
  }
  return false;
}

/** Hands a key to the list of the room when nothing else has the focus: the list takes it from there. */
function intoList(e: KeyboardEvent): boolean {
  const list = document.querySelector<HTMLElement>("#view .rows, main .rows");
  if (list && !list.contains(document.activeElement)) {
    list.focus();
    list.dispatchEvent(new KeyboardEvent("keydown", { key: e.key, bubbles: true, cancelable: true }));
    return true;
  }
  const all = [...document.querySelectorAll<HTMLElement>("main [data-question], main ul.teams a")];
  if (list || all.length === 0 || e.key === "x") return false;
  const at = all.findIndex((x) => x.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at + (e.key === "j" ? 1 : -1)))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

const hold = new Hold();

function answerWith(key: "y" | "n"): boolean {
  const k = answerKey(key, document.activeElement, document);
  if (!k) return false;
  if (k.do === "focus") {
    k.card.focus();
    k.card.scrollIntoView({ block: "nearest" });
  } else if (k.do === "press") k.button.click();
  else {
    k.button.classList.add("held");
    hold.press(
      () => k.button.isConnected && k.button.click(),
      () => k.button.classList.remove("held"),
    );
  }
  return true;
}
