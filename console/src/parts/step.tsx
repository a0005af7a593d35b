import type { JSX } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { reason, say } from "../app.ts";
import type { StepBlock, StepNote } from "../fold/blocks.ts";
import { planAgain, restartStep, skipStep } from "../model/act.ts";
import { problem } from "../problem.ts";
import { t, type Word } from "../words.ts";
import { Sign, Text } from "./basics.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { Follows } from "./scroll.tsx";
import { Long } from "./tool.tsx";

/** A step of a run with what was said and called in it. It is folded once it is done, unless somebody is reading there. */
export function StepCard(p: {
  of: StepBlock;
  note: StepNote | undefined;
  live: boolean;
  /** Something in it must be seen. */
  loud: boolean;
  /** The session and the run in which its people may act. */
  acts: { session: string; run: string; over: boolean } | undefined;
  children: JSX.Element[];
}): JSX.Element {
  const { note } = p;
  const status = note?.status ?? "completed";
  const wants = p.loud || status === "running" || status === "failed";
  const [chosen, choose] = useState<boolean | undefined>(undefined);
  const follows = useContext(Follows);
  const wanted = useRef(wants);
  useEffect(() => {
    if (wanted.current && !wants && !follows?.at.current) choose((c) => c ?? true); // it is being read
    wanted.current = wants;
  }, [wants]);
  const open = chosen ?? wants;
  const why = note && whyOf(note);
  const state = status === "waiting" ? "queued" : status;
  return (
    <details
      class={`step state-${state}`}
      data-step={p.of.place}
      open={open}
      onToggle={(e) => e.currentTarget.open !== open && choose(!open)}
    >
      <summary>
        <Sign state={state} />
        <span class="title">
          <Text most={300}>{note?.title ?? p.of.id}</Text>
        </span>
        {note && note.tries > 1 && <small>{t("step.tries", { n: note.tries })}</small>}
        {why && !open && <small>{why}</small>}
        <Long of={status === "waiting" ? undefined : note} live={p.live} />
        <Icon name="down" class="turn" />
      </summary>
      <div class="within">
        {p.children}
        {why && (
          <p class="why">
            <Text most={2000}>{why}</Text>
          </p>
        )}
        {p.acts && <Actions step={p.of.id} status={status} text={note?.text ?? ""} {...p.acts} />}
      </div>
    </details>
  );
}

const reasons: Record<string, Word> = {
  dependency_failed: "step.skipped.dependency",
  user_request: "step.skipped.user",
  timeout: "step.skipped.timeout",
};

/** Why a step has failed or was skipped. */
function whyOf({ status, text, code }: StepNote): string {
  if (status === "cancelled") return t(reasons[text] ?? "step.skipped");
  return status === "failed" ? text || problem(code ?? "INTERNAL") : "";
}

/** The ways on from a step. What waits for one that has failed is tried with it. */
function Actions(p: { session: string; run: string; over: boolean; step: string; status: string; text: string }): JSX.Element | null {
  const [busy, setBusy] = useState(false);
  const follows = useContext(Follows);
  useEffect(() => setBusy(false), [p.status]);
  const act = (icon: IconName, word: Word, what: () => Promise<unknown>, look = "") => (
    <button
      type="button"
      class={look}
      disabled={busy}
      onClick={() => {
        setBusy(true);
        what().then(
          () => p.over && follows?.go(), // the new run is shown at the end
          (error) => {
            setBusy(false);
            say(reason(error));
          },
        );
      }}
    >
      <Icon name={icon} />
      {t(word)}
    </button>
  );
  if (p.status === "running") return <p class="ways">{act("slash", "step.skip", () => skipStep(p.session, p.run, p.step), "quiet")}</p>;
  if (p.status !== "failed" && (p.status !== "cancelled" || p.text === "dependency_failed")) return null;
  return (
    <p class="ways">
      {act("again", "step.restart", () => restartStep(p.session, p.run, p.step))}
      {p.over && act("list", "step.replan", () => planAgain(p.session), "quiet")}
    </p>
  );
}
