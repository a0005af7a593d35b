import type { ViewItem, ViewStep } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { t, type Word } from "../words.ts";
import { StateChip, Text } from "./basics.tsx";
import { PlanGraph } from "./graph.tsx";
import { Icon } from "./icons.tsx";

/** A plan: how far it is, its steps, and why some of them failed or were skipped. */
export function PlanCard({ item }: { item: Extract<ViewItem, { kind: "plan" }> }): JSX.Element {
  const { steps, status } = item;
  const done = steps.filter((s) => s.status === "completed").length;
  const lost = steps.filter((s) => s.status === "failed" || (s.status === "cancelled" && status !== "cancelled"));
  const over = status === "done" && lost.length > 0;
  return (
    <article class="item plan">
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
      <PlanGraph steps={steps} go={(step) => show(item.run, step)} />
      {lost.length > 0 && (
        <ul class="lost">
          {lost.map((s) => (
            <li key={s.id} class={`state-${s.status}`}>
              <Icon name={s.status === "failed" ? "cross" : "slash"} />
              <span>
                <b>
                  <Text>{s.title}</Text>
                </b>{" "}
                <Text most={600}>{why(s)}</Text>
              </span>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** Shows what a step of a run has said or called first, if that is on the page. */
function show(run: string, step: string): void {
  const at = document.querySelector<HTMLElement>(`.talk [data-step="${CSS.escape(`${run}/${step}`)}"]`);
  at?.scrollIntoView({ block: "center", behavior: "smooth" });
  at?.classList.add("found");
  setTimeout(() => at?.classList.remove("found"), 1200);
}

const reasons: Record<string, Word> = {
  dependency_failed: "step.skipped.dependency",
  user_request: "step.skipped.user",
  timeout: "step.skipped.timeout",
};

function why(s: ViewStep): string {
  if (s.status === "failed") return s.text || t("state.failed");
  return t(reasons[s.text] ?? "step.skipped");
}
