import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { mayAct, me, reason, say, status, title, waiting } from "../app.ts";
import type { Message } from "../fold/message.ts";
import { sample } from "../log/sample.ts";
import { messageTeam, startTeam } from "../model/act.ts";
import { useAgents } from "../model/agents.ts";
import { stateOf } from "../model/columns.ts";
import { Overview } from "../model/overview.ts";
import { plug } from "../model/plug.ts";
import { Skeleton, StateChip, Text, Time } from "../parts/basics.tsx";
import { Composer, draft, mode } from "../parts/composer.tsx";
import { Icon, type IconName } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { go, type Route, room } from "../route.ts";
import { t, type Word } from "../words.ts";
import { begin } from "./session.tsx";
import { example } from "./teams.tsx";

/** The start page: what the installation does now, a question to the model, and what to try first. */
export function Start(): JSX.Element {
  const [waits, setWaits] = useState(false);
  const [sending, setSending] = useState<Message | undefined>(undefined);
  useEffect(() => {
    title.value = "";
  }, []);
  const send = (m: Message) => {
    setSending(m);
    begin(m, setWaits).catch((error) => {
      setSending(undefined);
      say(reason(error));
      draft.value ||= m.content;
    });
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="start" tabIndex={0} aria-label={t("nav.playground")}>
      <div class="column">
        <h1>{t("play.title")}</h1>
        <p class="lead">{t("play.text")}</p>
        {sending ? (
          <>
            <article class="item user">
              <h2>{t("talk.you")}</h2>
              <p class="said about">
                <Text most={20_000}>{sending.content}</Text>
              </p>
            </article>
            <Skeleton rows={3} />
          </>
        ) : (
          <>
            <Composer waits={waits} send={send} />
            <Model />
            {(mayAct.value || !me.value) && <Ideas send={send} />}
            <Now />
            <Samples />
          </>
        )}
      </div>
    </section>
  );
}

/** Which model answers, and what may be expected of it. */
function Model(): JSX.Element | null {
  const models = status.value?.models;
  if (!models) return <p class="model" />;
  const names = models.filter((m) => m.workers > 0).map((m) => m.name);
  if (names.length === 0) return <p class="model warns">{t("play.model.none")}</p>;
  return (
    <p class="model">
      {t("play.model")} <b>{names.join(", ")}</b>
      {names.every((n) => n === "demo") && <> · {t("play.model.demo")}</>}
    </p>
  );
}

interface Idea {
  name: "tool" | "plan" | "team" | "plug";
  icon: IconName;
  /** What is asked, and what is said of it. */
  ask: Word;
  about: Word;
  run: (send: (m: Message) => void) => void;
}

/** What may be tried. With `waggle demo` tools ask before they write, and the server can be killed. */
function ideas(): readonly Idea[] {
  const demo = plug.value !== "";
  const asks = (name: Idea["name"], icon: IconName, how: "chat" | "plan", words: Word, about: Word): Idea => ({
    name,
    icon,
    ask: words,
    about,
    run: (send) => ask(send, how, words),
  });
  const all = [
    demo
      ? asks("tool", "tool", "chat", "play.write.ask", "play.write.about")
      : asks("tool", "tool", "chat", "play.tool.ask", "play.tool.about"),
    asks("plan", "list", "plan", "play.plan.ask", "play.plan.about"),
    {
      name: "team",
      icon: "team",
      ask: "play.team.ask",
      about: "play.team.about",
      run: () => void team().catch((e) => say(reason(e))),
    } as Idea,
  ];
  return demo ? [...all, asks("plug", "plug", "chat", "play.plug.ask", "play.plug.about")] : all;
}

function ask(send: (m: Message) => void, how: "chat" | "plan", words: Word): void {
  mode.value = how;
  send({ content: t(words), mode: how, confirm: true });
}

/** Starts the example team, gives it something to do, and shows it. */
async function team(): Promise<void> {
  const id = await startTeam(example);
  await messageTeam(id, t("play.team.ask"), "");
  go({ room: "teams", id, view: "tree" });
}

/** What shows best what is special here. */
function Ideas({ send }: { send: (m: Message) => void }): JSX.Element {
  return (
    <>
      <h2 class="only-read">{t("play.first")}</h2>
      <ul class="ideas">
        {ideas().map((idea) => (
          <li key={idea.name}>
            <button type="button" onClick={() => idea.run(send)}>
              <Icon name={idea.icon} />
              <b>{t(`play.${idea.name}`)}</b>
              <span>{t(idea.ask)}</span>
              <small>{t(idea.about)}</small>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What happens now: counts that lead to what they count, and the sessions that changed last. */
function Now(): JSX.Element {
  const o = useMemo(() => new Overview(), []);
  useEffect(() => () => o.close(), [o]);
  const agents = useAgents();
  const sessions = (state: string) => ({ ...room("sessions"), state }) as Route;
  const recent = o.sessions.value;
  return (
    <section class="now" aria-label={t("now.title")}>
      <ul class="counts">
        <Figure word="now.running" look="running" count={o.running.value} to={sessions("running")} />
        <Figure word="now.waiting" look="waiting" count={String(waiting.value)} to={room("questions")} />
        <Figure word="now.failed" look="failed" count={o.failed.value} to={sessions("failed")} />
        <Figure word="now.agents" look="completed" count={String(agents.length)} to={room("swarm")} />
      </ul>
      {recent && recent.length > 0 && (
        <>
          <h2>{t("now.recent")}</h2>
          <ul class="recent">
            {recent.map((s) => (
              <li key={s.session_id}>
                <Link to={{ ...room("sessions"), id: s.session_id } as Route}>
                  <StateChip state={stateOf(s)} small />
                  <span>
                    <Text>{s.question || t("sessions.untitled")}</Text>
                  </span>
                  <Time at={s.updated_at} />
                </Link>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Figure(p: { word: Word; look: string; count: string | undefined; to: Route }): JSX.Element {
  const some = p.count !== undefined && p.count !== "0";
  return (
    <li class={some ? `state-${p.look}` : undefined}>
      <Link to={p.to}>
        <b>{p.count ?? "–"}</b>
        <span>{t(p.word)}</span>
      </Link>
    </li>
  );
}

/** Where the recorded sample shows it best: the plan while it waits for an answer, the call that asks, and that in AG-UI. */
const samples = [
  { name: "travel", icon: "clock", to: { view: "talk", at: 44 } },
  { name: "inbox", icon: "hand", to: { view: "talk", at: 9 } },
  { name: "protocols", icon: "code", to: { view: "log", at: 30 } },
] as const;

/** What a newcomer does not look for, each with a place of the recorded sample that shows it. */
function Samples(): JSX.Element {
  return (
    <section class="samples">
      <h2>{t("play.sample")}</h2>
      <ul>
        {samples.map(({ name, icon, to }) => (
          <li key={name}>
            <Link to={{ ...room("sessions"), id: sample, ...to } as Route}>
              <Icon name={icon} />
              <b>{t(`play.${name}`)}</b>
              <span>{t(`play.${name}.about`)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
