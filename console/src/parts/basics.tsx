import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, copy, mayAct, me, now, reason, span } from "../app.ts";
import { cut, plain } from "../fold/text.ts";
import { problem } from "../problem.ts";
import { t, type Word } from "../words.ts";
import { Icon, type IconName } from "./icons.tsx";

/** A text that others have written: it cannot leave its place, hide anything, or turn its surroundings around. */
export function Text({ children, most = 120 }: { children: string; most?: number }): JSX.Element {
  return <bdi dir="auto">{cut(plain(children), most)}</bdi>;
}

const states: Record<string, { word: Word; icon: IconName; look: string }> = {
  idle: { word: "state.idle", icon: "circle", look: "queued" },
  open: { word: "state.open", icon: "circle", look: "queued" },
  called: { word: "state.queued", icon: "circle", look: "queued" },
  queued: { word: "state.queued", icon: "circle", look: "queued" },
  running: { word: "state.running", icon: "dot", look: "running" },
  waiting: { word: "state.waiting", icon: "hand", look: "waiting" },
  completed: { word: "state.completed", icon: "tick", look: "completed" },
  done: { word: "state.completed", icon: "tick", look: "completed" },
  partly: { word: "state.partly", icon: "slash", look: "waiting" },
  failed: { word: "state.failed", icon: "cross", look: "failed" },
  refused: { word: "state.refused", icon: "cross", look: "failed" },
  cancelled: { word: "state.cancelled", icon: "slash", look: "cancelled" },
  closed: { word: "state.closed", icon: "slash", look: "cancelled" },
  not_started: { word: "state.not_started", icon: "circle", look: "queued" },
  in_progress: { word: "state.running", icon: "dot", look: "running" },
  blocked: { word: "state.blocked", icon: "slash", look: "waiting" },
  paused: { word: "state.paused", icon: "pause", look: "waiting" },
  unknown_outcome: { word: "state.unknown", icon: "unknown", look: "unknown" },
  unknown: { word: "state.unknown", icon: "unknown", look: "unknown" },
};

/** How a state looks: the part of a class. */
export function look(state: string): string {
  return states[state]?.look ?? "queued";
}

/** A state: always sign, word and colour. */
export function StateChip({ state, small, text }: { state: string; small?: boolean; text?: string | undefined }): JSX.Element {
  const s = states[state];
  return (
    <span class={`chip state-${look(state)}${small ? " small" : ""}`}>
      <Icon name={s?.icon ?? "circle"} />
      {text ?? (s ? t(s.word) : <Text>{state}</Text>)}
    </span>
  );
}

/** A state in a list of many: its sign in its colour, and the word to point at or to hear. */
export function Sign({ state }: { state: string }): JSX.Element {
  const s = states[state];
  const word = s ? t(s.word) : state;
  return (
    <span class={`sign state-${look(state)}`} title={word}>
      <Icon name={s?.icon ?? "circle"} />
      <span class="only-read">{word}</span>
    </span>
  );
}

/** What time it was, with the exact time to point at. */
export function Time({ at, precise }: { at: string | number; precise?: boolean }): JSX.Element {
  const d = new Date(at);
  const iso = Number.isNaN(d.getTime()) ? "" : d.toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {clock(at, precise)}
    </time>
  );
}

/** What is left until a time, each second anew. */
export function Left({ until }: { until: string | undefined }): JSX.Element {
  if (until === undefined) return <>{t("question.forever")}</>;
  return <>{t("question.left", { time: span(Math.max(0, Date.parse(until) - now.value)) })}</>;
}

/** The beginning and the end of an id. */
export const shortened = (id: string): string => (id.length > 14 ? `${id.slice(0, 6)}…${id.slice(-5)}` : id);

/** An id in short. A click copies it whole. */
export function Id({ value }: { value: string }): JSX.Element {
  const short = shortened(value);
  return (
    <button type="button" class="id" title={value} onClick={() => void copy(value)}>
      <bdi>{plain(short)}</bdi>
    </button>
  );
}

/** What a part shows while it has nothing to show: it loads, it is empty, or it failed. */
export function Face(p: {
  title: string;
  /** It is all that the room shows. */
  heading?: boolean;
  text?: string;
  action?: { text: string; go: () => void };
  kind?: "empty" | "error";
}): JSX.Element {
  return (
    <div class={`face ${p.kind ?? "empty"}`} role={p.kind === "error" ? "alert" : undefined}>
      {p.heading ? <h1>{p.title}</h1> : <h2>{p.title}</h2>}
      {p.text && (
        <p>
          <Text most={400}>{p.text}</Text>
        </p>
      )}
      {p.action && (
        <button type="button" onClick={p.action.go}>
          {p.action.text}
        </button>
      )}
    </div>
  );
}

/** The face of an error. */
export function Failure({ error, again }: { error: unknown; again: () => void }): JSX.Element {
  const code = (error as { code?: string } | undefined)?.code;
  return <Face kind="error" title={problem(code ?? "INTERNAL")} text={reason(error)} action={{ text: t("face.again"), go: again }} />;
}

/** Why there is nothing to act with, once in a room. */
export function ViewOnly({ why }: { why: Word }): JSX.Element | null {
  if (!me.value || mayAct.value) return null;
  return <p class="view-only">{t(why)}</p>;
}

/** Rows in the shape of what is loading, after a moment. */
export function Skeleton({ rows = 5 }: { rows?: number }): JSX.Element {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="skeleton" role="status" aria-label={t("face.loading")}>
      {late && Array.from({ length: rows }, (_, i) => <div key={i} />)}
    </div>
  );
}

/** A dialog of the platform: Escape closes it, and what is behind it is out of reach. */
export function Dialog(p: { label: string; close?: () => void; children: ComponentChildren; class?: string }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
    return () => ref.current?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-label={p.label}
      class={p.class}
      onCancel={(e) => {
        e.preventDefault();
        p.close?.();
      }}
      onPointerDown={(e) => e.target === ref.current && p.close?.()}
    >
      {p.children}
    </dialog>
  );
}
