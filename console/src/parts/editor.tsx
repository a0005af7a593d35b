import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plain, prose } from "../fold/text.ts";
import { t } from "../words.ts";
import { Text } from "./basics.tsx";
import { PlanMap } from "./graph.tsx";
import { Icon } from "./icons.tsx";
import { type Editable, moved } from "./steps.ts";

/** Changes the steps of a plan: their titles, their order, and which of them are carried out; beside them what needs what. */
export function PlanEditor(p: { steps: readonly Editable[]; change: (steps: readonly Editable[]) => void; over: boolean }): JSX.Element {
  const { steps, change } = p;
  const list = useRef<HTMLOListElement>(null);
  const [dragged, drag] = useState("");
  const focus = useRef("");
  const now = useRef(steps);
  now.current = steps;
  const move = (id: string, to: number) => {
    const next = moved(now.current, id, to);
    if (next !== now.current) change(next);
  };
  useLayoutEffect(() => {
    if (focus.current === "") return;
    list.current?.querySelector<HTMLElement>(`[data-step="${focus.current}"] .title`)?.focus(); // an element that is moved loses it
    focus.current = "";
  });
  useEffect(() => {
    if (dragged === "") return;
    const end = new AbortController();
    addEventListener("pointermove", (e) => move(dragged, placeAt(list.current, dragged, e.clientY)), end);
    for (const what of ["pointerup", "pointercancel", "blur"]) addEventListener(what, () => drag(""), end);
    return () => end.abort();
  }, [dragged]);
  return (
    <div class="planning">
      <ol class="editor" ref={list} inert={p.over}>
        {steps.map((s, i) => (
          <Row
            key={s.step.id}
            of={s}
            n={i + 1}
            last={i === steps.length - 1}
            needs={(s.step.dependencies ?? []).map((d) => steps.findIndex((x) => x.step.id === d) + 1)}
            dragged={dragged === s.step.id}
            drag={() => drag(s.step.id)}
            change={(to) => change(steps.with(i, to))}
            move={(by, keys) => {
              if (keys) focus.current = s.step.id;
              move(s.step.id, i + by);
            }}
          />
        ))}
      </ol>
      <PlanMap steps={steps} />
    </div>
  );
}

/** The place in a list that a pointer is at: it has passed the middle of what stands there. */
function placeAt(list: HTMLElement | null, id: string, y: number): number {
  const rows = [...(list?.children ?? [])] as HTMLElement[];
  const others = rows.filter((r) => r.dataset["step"] !== id);
  return others.filter((r) => {
    const { top, height } = r.getBoundingClientRect();
    return top + height / 2 < y;
  }).length;
}

function Row(p: {
  of: Editable;
  n: number;
  last: boolean;
  needs: readonly number[];
  dragged: boolean;
  drag: () => void;
  change: (to: Editable) => void;
  move: (by: number, keys: boolean) => void;
}): JSX.Element {
  const { of, n } = p;
  const { step, dropped } = of;
  const look = `${dropped ? "dropped" : ""} ${p.dragged ? "dragged" : ""}`.trim();
  return (
    <li
      class={look}
      data-step={step.id}
      onKeyDown={(e) => {
        if (!e.altKey || (e.key !== "ArrowUp" && e.key !== "ArrowDown")) return;
        e.preventDefault();
        p.move(e.key === "ArrowUp" ? -1 : 1, true);
      }}
    >
      <span
        class="grip"
        title={t("question.grip", { n })}
        onPointerDown={(e) => {
          e.preventDefault();
          p.drag();
        }}
      >
        <Icon name="grip" />
        {n}
      </span>
      <Title n={n} title={step.title} dropped={dropped} change={(title) => p.change({ dropped, step: { ...step, title } })} />
      {p.needs.length > 0 && <span class="needs">{t("question.needs", { list: p.needs.join(", ") })}</span>}
      <button type="button" class="quiet" aria-label={t("question.up", { n })} disabled={n === 1} onClick={() => p.move(-1, false)}>
        <Icon name="up" />
      </button>
      <button type="button" class="quiet" aria-label={t("question.down", { n })} disabled={p.last} onClick={() => p.move(1, false)}>
        <Icon name="down" />
      </button>
      <button
        type="button"
        class="quiet drop"
        aria-label={t(dropped ? "question.keep" : "question.drop", { n })}
        onClick={() => p.change({ step, dropped: !dropped })}
      >
        {dropped ? t("question.undo") : <Icon name="cross" />}
      </button>
    </li>
  );
}

/**
 * The title of a step: a text that shows what is hidden in it, until a click makes it a field. A field would show hidden characters as
 * they want to be shown, reversed for instance, so editing begins without them.
 */
function Title(p: { n: number; title: string; dropped: boolean; change: (title: string) => void }): JSX.Element {
  const [before, edit] = useState<string | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  const text = useRef<HTMLButtonElement>(null);
  const back = useRef(false);
  useLayoutEffect(() => {
    if (before !== undefined) field.current?.focus();
    else if (back.current) text.current?.focus();
    back.current = false;
  }, [before === undefined]);
  const done = (title: string, keys: boolean) => {
    back.current = keys;
    p.change(title);
    edit(undefined);
  };
  if (before === undefined)
    return (
      <button
        ref={text}
        type="button"
        class="quiet title"
        title={t(plain(p.title) === p.title ? "question.rename" : "question.clean")}
        disabled={p.dropped}
        onClick={() => {
          edit(p.title);
          p.change(prose(p.title));
        }}
      >
        <Text most={400}>{p.title}</Text>
      </button>
    );
  return (
    <input
      ref={field}
      type="text"
      class="title"
      aria-label={t("question.titleOf", { n: p.n })}
      dir="auto"
      value={p.title}
      onInput={(e) => p.change(e.currentTarget.value)}
      onBlur={() => edit(undefined)}
      onKeyDown={(e) => {
        if (e.isComposing || (e.key !== "Enter" && e.key !== "Escape")) return;
        e.preventDefault();
        e.stopPropagation();
        done(e.key === "Escape" ? before : p.title, true);
      }}
    />
  );
}
