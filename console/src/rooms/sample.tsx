import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { title } from "../app.ts";
import { sample } from "../log/sample.ts";
import { spoken } from "../model/frames.ts";
import { LogModel } from "../model/log.ts";
import { StateChip } from "../parts/basics.tsx";
import { Head } from "../parts/head.tsx";
import { Talk } from "../parts/talk.tsx";
import { go, type Route, room, sessionViews } from "../route.ts";
import { t } from "../words.ts";
import { LogView } from "./logview.tsx";

/** A recorded session, for people who look around: as one of the installation, but that nothing happens in it any more. */
export function SampleRoom({ at }: { at: Extract<Route, { room: "sessions" }> }): JSX.Element {
  const model = useMemo(() => new LogModel("session", sample, { part: at.view, at: at.at }), []);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => model.seek(at.at), [model, at.at]);
  useEffect(() => model.show(at.view), [model, at.view]);
  useEffect(() => {
    title.value = t("sample.name");
    if (at.view === "log") spoken.value ??= "agui"; // it was opened for the protocols
  }, []);
  const change = (to: Partial<typeof at>) => go({ ...at, ...to }, "replace");
  const past = model.inPast;
  return (
    <section class={past ? "session past" : "session"} aria-label={t("sample.name")}>
      <Head
        model={model}
        name={t("sample.name")}
        label={t("session.views")}
        state={<StateChip state={model.summary.value.state} />}
        back={{ label: t("sample.back"), go: () => go(room("playground")) }}
        views={sessionViews.map((id) => ({ id, text: t(`session.${id}`) }))}
        view={at.view}
        turn={(to) => change({ view: to })}
        seek={(to, how) => {
          model.seek(to);
          if (how === "stays") change({ at: to });
        }}
      />
      <LogView model={model} view={at.view} ready={model.has(at.view)} loud="" toLog={() => change({ view: "log" })}>
        <Talk model={model} live={false} />
      </LogView>
      <p class="hint">{t("sample.text")}</p>
    </section>
  );
}
