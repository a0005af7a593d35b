import { useSignalEffect } from "@preact/signals";
import type { SessionSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { epoch, mayAct, reason, say, span, title } from "../app.ts";
import type { Attempts } from "../fold/attempts.ts";
import type { Message } from "../fold/message.ts";
import { plain } from "../fold/text.ts";
import { askAgain, closeSession, deleteSession, ending, nameSession, sendMessage, stopRun } from "../model/act.ts";
import { whoOf } from "../model/columns.ts";
import { choose, chosen, compareChosen } from "../model/compare.ts";
import { sessionSummary } from "../model/counts.ts";
import { remember } from "../model/lists.ts";
import { LogModel } from "../model/log.ts";
import { dollars, tokens, tokensOf } from "../parts/amounts.ts";
import { Face, Failure, StateChip } from "../parts/basics.tsx";
import { Composer, draft } from "../parts/composer.tsx";
import { ConfirmDialog } from "../parts/confirm.tsx";
import { type Fact, Facts } from "../parts/facts.tsx";
import { Head } from "../parts/head.tsx";
import { Icon } from "../parts/icons.tsx";
import { Plug } from "../parts/plug.tsx";
import { Talk } from "../parts/talk.tsx";
import { go, type Route, room, type SessionView, sessionViews } from "../route.ts";
import { t } from "../words.ts";
import { LogView } from "./logview.tsx";

type SessionRoute = Extract<Route, { room: "sessions" }>;

// The playground hands the session that it has made to this room, so that nothing is read or drawn twice.
let begun: LogModel | undefined;

/** Sends the first message of a new session, and shows it. */
export async function begin(m: Message, onWait: (waits: boolean) => void): Promise<void> {
  const id = await nameSession();
  begun = new LogModel("session", id, { part: "talk", fresh: true });
  await sendMessage(id, m, onWait);
  begun.read(true);
  remember(id, m.content);
  go({ room: "sessions", id, view: "talk", q: "", state: "" });
}

function modelOf(id: string, part: SessionView, at: number | undefined): LogModel {
  const m = begun?.id === id ? begun : new LogModel("session", id, { part, at });
  begun = undefined;
  return m;
}

/** One session: its conversation, what took how long, and its log, as of now or as of any event. */
export function SessionRoom({ at }: { at: SessionRoute & { id: string } }): JSX.Element {
  const model = useMemo(() => modelOf(at.id, at.view, at.at), [at.id, epoch.value]);
  const summary = useMemo(() => sessionSummary(at.id), [at.id, epoch.value]);
  useEffect(() => () => summary.close(), [summary]);
  const [waits, setWaits] = useState(false);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    model.seek(at.at);
  }, [model, at.at]);
  useEffect(() => model.show(at.view), [model, at.view]);
  useSignalEffect(() => {
    title.value = nameOf(model);
  });
  if (model.error.value && model.head === 0) {
    if (model.missing) return <Missing />;
    return <Failure error={model.error.value} again={() => model.read()} />;
  }
  const { state, unknowns, attempts } = model.summary.value;
  const facts = summary.answer.value;
  const past = model.inPast;
  const change = (to: Partial<SessionRoute>) => go({ ...at, ...to } as SessionRoute, "replace");
  const seek = (to: number | undefined, how: "passes" | "stays") => {
    model.seek(to);
    if (to !== undefined) model.whole(true);
    if (how === "stays") change({ at: to });
  };
  const send = (m: Message) => {
    sendMessage(at.id, m, setWaits).catch((error) => {
      say(reason(error));
      draft.value ||= m.content;
    });
  };
  return (
    <section class={past ? "session past" : "session"} aria-label={nameOf(model)}>
      <Head
        model={model}
        name={nameOf(model)}
        label={t("session.views")}
        state={<StateChip state={state} />}
        back={{ label: t("session.back"), go: () => go(room("sessions")) }}
        views={sessionViews.map((id) => ({ id, text: t(`session.${id}`) }))}
        view={at.view}
        turn={(to) => change({ view: to, pick: undefined })}
        seek={seek}
        facts={facts && <Facts all={factsOf(facts, attempts, at)} />}
      >
        {mayAct.value && !past && (state === "failed" || state === "cancelled" || state === "partly") && (
          <button type="button" class="quiet" onClick={() => void askAgain(at.id, model.head).catch((error) => say(reason(error)))}>
            <Icon name="again" />
            <span class="wide main">{t("session.again")}</span>
          </button>
        )}
        {mayAct.value && (
          <button type="button" class="quiet" aria-disabled="true" title={t("session.fork.why")} onClick={() => say(t("session.fork.why"))}>
            <Icon name="fork" />
            <span class="wide">{t("session.fork")}</span>
          </button>
        )}
        <button
          type="button"
          class="quiet"
          title={t("compare.button")}
          aria-pressed={chosen.value.includes(at.id)}
          onClick={() => {
            if (!compareChosen(at.id)) choose(at.id);
          }}
        >
          <Icon name="compare" />
          <span class="wide">{t("compare.button")}</span>
        </button>
        {mayAct.value && <Ends id={at.id} name={nameOf(model)} />}
      </Head>
      <LogView
        model={model}
        view={at.view}
        ready={model.has(at.view)}
        loud={unknowns > 0 ? t("session.unknowns", { n: unknowns }) : ""}
        bar={at.pick}
        toLog={() => change({ view: "log", pick: undefined })}
      >
        <Talk model={model} live={!past} />
      </LogView>
      {!past && <Plug model={model} running={state === "running" || state === "waiting"} />}
      {!past && at.view === "talk" && (
        <Composer
          session={at.id}
          waits={waits}
          send={send}
          stop={state === "running" || state === "waiting" ? () => void stopRun(at.id).catch((error) => say(reason(error))) : undefined}
        />
      )}
    </section>
  );
}

/** What the runs of a session took, and who answered and asked. */
function factsOf(s: SessionSummary, attempts: Attempts | undefined, place: SessionRoute): Fact[] {
  const runs = s.runs ?? 0;
  return [
    s.duration_ms ? span(s.duration_ms) : undefined,
    attempts && {
      text: t("facts.attempts", { n: attempts.n }),
      about: t("facts.attempts.about"),
      to: { ...place, view: "trace", pick: attempts.seq },
    },
    whoOf(s) || undefined,
    s.tokens ? { text: t("facts.tokens", { n: tokens(s.tokens) }), about: tokensOf(s) } : undefined,
    s.cost_usd === undefined ? undefined : dollars(s.cost_usd),
    runs > 1 ? t("sessions.runs", { n: runs }) : undefined,
    s.principal ? t("facts.by", { who: s.principal }) : undefined,
  ];
}

/** Closes or deletes the session, once the reader has typed its name. */
function Ends({ id, name }: { id: string; name: string }): JSX.Element {
  const asks = ending.value;
  const ask = (what: typeof asks) => {
    ending.value = what;
  };
  useEffect(() => () => ask(undefined), [id]);
  const act = async (what: "close" | "delete") => {
    ask(undefined);
    try {
      await (what === "close" ? closeSession(id) : deleteSession(id));
      if (what === "delete") go(room("sessions"), "replace");
    } catch (error) {
      say(reason(error));
    }
  };
  return (
    <>
      <button type="button" class="quiet" title={t("session.close")} onClick={() => ask("close")}>
        <Icon name="slash" />
        <span class="only-read">{t("session.close")}</span>
      </button>
      <button type="button" class="quiet" title={t("session.delete")} onClick={() => ask("delete")}>
        <Icon name="bin" />
        <span class="only-read">{t("session.delete")}</span>
      </button>
      {asks && (
        <ConfirmDialog
          title={t(`session.${asks}.title`)}
          text={t(`session.${asks}.text`)}
          name={plain(name).trim().slice(0, 24).trim()}
          action={t(`session.${asks}`)}
          run={() => void act(asks)}
          close={() => ask(undefined)}
        />
      )}
    </>
  );
}

function Missing(): JSX.Element {
  return (
    <Face
      heading
      title={t("session.none")}
      text={t("session.none.text")}
      action={{ text: t("session.back"), go: () => go(room("sessions")) }}
    />
  );
}

/** What a session is called: its first message. */
function nameOf(model: LogModel): string {
  return model.summary.value.name || t(model.head === 0 ? "session.new" : "sessions.untitled");
}
