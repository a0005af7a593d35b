import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { clock, now, reason, say, span } from "../app.ts";
import type { LogModel } from "../model/log.ts";
import { type Fall, plug, Witness } from "../model/plug.ts";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";

/** Kills the server in the middle of an answer, tells what becomes of it, and counts what was lost: with `waggle demo` alone. */
export function Plug({ model, running }: { model: LogModel; running: boolean }): JSX.Element | null {
  return plug.value === "" ? null : <Pull model={model} running={running} />;
}

function Pull({ model, running }: { model: LogModel; running: boolean }): JSX.Element | null {
  const head = model.head;
  const ready = useComputed(() => model.extent.value.head > 0).value || running;
  const witness = useMemo(() => (ready ? new Witness(model.id, model.fresh ? 0 : model.head) : undefined), [model, ready]);
  useEffect(() => () => witness?.close(), [witness]);
  const [pulling, setPulling] = useState(false);
  const fall = witness?.fall.value;
  const result = witness?.result.value;
  useEffect(() => {
    if (fall?.resumed && !running) witness?.count(head).catch((error) => say(reason(error)));
  }, [fall, running, head, witness]);
  if (!witness || (!running && !fall)) return null;
  const faults = result && result.lost + result.doubled + result.reordered > 0;
  const away = fall && fall.back === undefined;
  const pull = () => {
    setPulling(true);
    witness
      .pull()
      .catch((error) => say(reason(error)))
      .finally(() => setPulling(false));
  };
  return (
    <section class={`plug${away ? " away" : ""}${result ? (faults ? " away" : " counted") : ""}`} aria-label={t("plug.title")}>
      <div>
        {!fall && (
          <p>
            <b>{t("plug.title")}</b> {t("plug.text")}
          </p>
        )}
        {fall && (
          <div role="status">
            <ol>
              <Stages fall={fall} ended={!running} />
            </ol>
          </div>
        )}
        {result && (
          <p class="tally">
            <b>{t("plug.tally", { lost: result.lost, doubled: result.doubled + result.reordered })}</b>{" "}
            {t("plug.counted", { events: result.events })}
          </p>
        )}
      </div>
      {running && !away && (
        <button type="button" class="danger" disabled={pulling} onClick={pull}>
          <Icon name="plug" />
          {t(fall ? "plug.again" : "plug.pull")}
        </button>
      )}
    </section>
  );
}

function Stages({ fall, ended }: { fall: Fall; ended: boolean }): JSX.Element {
  const { killed, back, resumed, missed = 0 } = fall;
  return (
    <>
      <Stage done={true}>{t("plug.killed", { at: clock(killed) })}</Stage>
      <Stage done={back !== undefined}>
        {back === undefined
          ? t("plug.away", { time: span(Math.max(0, now.value - killed)) })
          : t("plug.back", { time: span(back - killed), missed })}
      </Stage>
      {back !== undefined && (
        <Stage done={resumed !== undefined}>
          {resumed === undefined ? t("plug.waits") : t("plug.resumed", { time: span(resumed - killed) })}
        </Stage>
      )}
      {resumed !== undefined && !ended && <Stage done={false}>{t("plug.counts")}</Stage>}
    </>
  );
}

function Stage({ done, children }: { done: boolean; children: string }): JSX.Element {
  return (
    <li class={done ? "state-completed" : "state-running"}>
      <Icon name={done ? "tick" : "dot"} />
      {children}
    </li>
  );
}
