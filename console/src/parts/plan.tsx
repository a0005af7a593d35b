import type { ViewItem } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import type { Margin } from "../fold/blocks.ts";
import { t } from "../words.ts";
import { StateChip, Text } from "./basics.tsx";
import { PlanGraph } from "./graph.tsx";

/** A plan: how far it is, and its steps. */
export function PlanCard(p: { item: Extract<ViewItem, { kind: "plan" }>; notes: Margin["steps"]; live: boolean }): JSX.Element {
  const { item } = p;
  const { steps, status } = item;
  const done = steps.filter((s) => s.status === "completed").length;
  const lost = steps.filter((s) => s.status === "failed" || (s.status === "cancelled" && status !== "cancelled"));
  const over = status === "done" && lost.length > 0;
  return (
    <article class={status === "waiting" ? "item plan waiting" : "item plan"}>
      <header>
        <h2>{t("talk.plan")}</h2>
        <Text most={300}>{item.summary}</Text>
        <span class="count">
          {over && done > 0 ? (
            <StateChip state="partly" small text={t("talk.partly", { done, all: steps.length })} />
          ) : (
            t("talk.steps", { done, all: steps.length })
          )}
        </span>
      </header>
      <PlanGraph steps={steps} note={(step) => p.notes[`${item.run}/${step}`]} live={p.live} go={(step) => show(item.run, step)} />
    </article>
  );
}

/** Shows a step of a run, if it is on the page. */
function show(run: string, step: string): void {
  const at = document.querySelector<HTMLDetailsElement>(`.talk details[data-step="${CSS.escape(`${run}/${step}`)}"]`);
  if (!at) return;
  at.open = true;
  at.scrollIntoView({ block: "center", behavior: "smooth" });
  at.classList.add("found");
  setTimeout(() => at.classList.remove("found"), 1200);
}
