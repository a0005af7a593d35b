import type { Signal } from "@preact/signals";
import type { ListedQuestion } from "@waggle-dev/client";
import type { TeamView } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { mayAct, reason, say, title } from "../app.ts";
import type { Side } from "../fold/arrows.ts";
import type { MemberRow } from "../log/protocol.ts";
import { weight } from "../log/window.ts";
import { closeTeam, controlTeam, ending, messageTeam } from "../model/act.ts";
import type { List } from "../model/lists.ts";
import { LogModel } from "../model/log.ts";
import { Face, Failure, Skeleton, StateChip, Text } from "../parts/basics.tsx";
import { Board } from "../parts/board.tsx";
import { ConfirmDialog } from "../parts/confirm.tsx";
import { EventDetail } from "../parts/detail.tsx";
import { useGradually } from "../parts/gradually.ts";
import { Head } from "../parts/head.tsx";
import { Icon } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { MemberTree, stateOf, waitText } from "../parts/members.tsx";
import { QuestionCard } from "../parts/question.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Sequence } from "../parts/sequence.tsx";
import { Later, sideName, Talk } from "../parts/talk.tsx";
import { Reasoning, Stopped } from "../parts/thought.tsx";
import { Waits } from "../parts/waits.tsx";
import { Writing } from "../parts/writing.tsx";
import { go, type Route, room, teamViews } from "../route.ts";
import { t } from "../words.ts";
import { Log } from "./log.tsx";

type TeamRoute = Extract<Route, { room: "teams" }> & { id: string };

const none: readonly MemberRow[] = [];

/** One team as of any event of its log: who is in it and waits for what, what they say, send to each other and have to do. */
export function TeamRoom({ at, questions }: { at: TeamRoute; questions: List<ListedQuestion> }): JSX.Element {
  const member = at.member ?? "";
  const model = useMemo(() => new LogModel("team", at.id, { part: at.view, member, at: at.at }), [at.id]);
  const [picked, pick] = useState(0);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    model.seek(at.at);
  }, [model, at.at]);
  useEffect(() => model.show(at.view, member), [model, at.view, member]);
  const { name, status } = model.summary.value;
  useEffect(() => {
    title.value = name || t("teams.title");
  }, [name]);
  const back = { label: t("team.back"), go: () => go(room("teams")) };
  if (model.error.value && model.head === 0) {
    if (model.missing) return <Face title={t("team.none")} text={t("team.none.text")} action={{ text: back.label, go: back.go }} />;
    return <Failure error={model.error.value} again={() => model.read()} />;
  }
  const past = model.inPast;
  const seek = (to: number | undefined, how: "passes" | "stays") => {
    model.seek(to);
    if (how === "stays") go({ ...at, at: to } as TeamRoute, "replace");
  };
  const asked = (questions.rows.value ?? []).filter((q) => q.team_id === at.id);
  const state = stateOf(!past && asked.length > 0 ? "waiting" : status);
  const open = state !== "closed";
  const look = (route: string) => {
    const { member: _, ...whole } = at;
    go({ ...whole, view: "tree", ...(route ? { member: route } : {}) }, at.view === "tree" ? "replace" : "push");
  };
  return (
    <section class={past ? "session past" : "session"} aria-label={name || t("teams.title")}>
      <Head
        model={model}
        name={name}
        label={t("team.views")}
        state={<StateChip state={state} />}
        back={back}
        views={teamViews.map((id) => ({ id, text: t(id === "log" ? "session.log" : `team.${id}`) }))}
        view={at.view}
        turn={(to) => {
          pick(0);
          go({ ...at, view: to }, "replace");
        }}
        seek={seek}
      >
        {mayAct.value && !past && open && model.head > 0 && <Controls id={at.id} name={name} paused={stateOf(status) === "paused"} />}
      </Head>
      <div class="view" id="view" role="tabpanel" aria-busy={model.behind} aria-labelledby={`tab-${at.view}`}>
        {at.view === "log" ? (
          model.head === 0 ? (
            <Skeleton />
          ) : (
            <Log model={model} picked={picked} pick={pick} />
          )
        ) : (
          <div class="team-view">
            {open && <Waits rows={model.members.value ?? none} open={(route) => look(route)} />}
            <div class={`team of-${at.view}${picked > 0 ? " with-detail" : ""}`}>
              <View at={at} model={model} state={state} asked={past ? [] : asked} picked={picked} pick={pick} live={!past && open} />
              {picked > 0 && at.view !== "tree" && <EventDetail model={model} seq={picked} close={() => pick(0)} />}
            </div>
          </div>
        )}
      </div>
    </section>
  );
}

/** Pauses, stops and closes a team. */
function Controls({ id, name, paused }: { id: string; name: string; paused: boolean }): JSX.Element {
  const closes = ending.value === "close";
  const ask = (close: boolean) => {
    ending.value = close ? "close" : undefined;
  };
  useEffect(() => () => ask(false), [id]);
  const control = (what: "pause" | "resume" | "stop") => void controlTeam(id, what).catch((error) => say(reason(error)));
  return (
    <>
      <button type="button" class="quiet" onClick={() => control(paused ? "resume" : "pause")}>
        <Icon name={paused ? "play" : "pause"} />
        <span class="wide">{t(paused ? "team.resume" : "team.pause")}</span>
      </button>
      <button type="button" class="quiet" onClick={() => control("stop")}>
        <Icon name="stop" />
        <span class="wide">{t("team.stop")}</span>
      </button>
      <button type="button" class="quiet" onClick={() => ask(true)}>
        <Icon name="slash" />
        <span class="wide">{t("team.close")}</span>
      </button>
      {closes && (
        <ConfirmDialog
          title={t("team.close.title")}
          text={t("team.close.text")}
          name={name}
          action={t("team.close")}
          run={() => {
            ask(false);
            closeTeam(id).catch((error) => say(reason(error)));
          }}
          close={() => ask(false)}
        />
      )}
    </>
  );
}

interface Viewed {
  at: TeamRoute;
  model: LogModel;
  state: string;
  asked: readonly ListedQuestion[];
  picked: number;
  pick: (seq: number) => void;
  /** Whether the team takes messages, and the present is shown. */
  live: boolean;
}

/** The members, and beside them what they say or send; or their tasks. */
function View({ at, model, state, asked, picked, pick, live }: Viewed): JSX.Element {
  const rows = model.members.value;
  if (!rows) return <Skeleton />;
  const { member: _, ...whole } = at;
  const of = (route: string): TeamRoute => ({ ...whole, view: "tree", ...(route ? { member: route } : {}) });
  const name = (route: string) => rows.find((m) => m.route === route)?.name ?? route;
  const side = (s: Side) => (s.startsWith("@") ? name(s.slice(1)) : sideName(s));
  const choose = (route: string) => go(of(route), at.view === "tree" ? "replace" : "push");
  if (at.view === "board")
    return model.tasks.value ? (
      <Board
        tasks={model.tasks.value}
        name={name}
        member={(route, text) => (
          <Link to={of(route)} class="who">
            {text}
          </Link>
        )}
        open={pick}
      />
    ) : (
      <Skeleton />
    );
  return (
    <>
      <MemberTree
        name={model.summary.value.name}
        state={state}
        rows={rows}
        chosen={at.view === "tree" ? (at.member ?? "") : "\0"}
        choose={choose}
        link={(route, w) => (
          <Link to={of(w.for === "people" ? route : w.route)}>
            <Text>{waitText(w, name)}</Text>
          </Link>
        )}
      />
      {at.view === "tree" ? (
        <div class="said-to">
          <Said model={model} member={at.member ?? ""} rows={rows} asked={asked} />
          {live && <ToMember id={at.id} members={rows} to={at.member ?? ""} fresh={model.talk.keys.value?.length === 0} />}
        </div>
      ) : !model.arrows.value ? (
        <Skeleton />
      ) : model.arrows.value.length === 0 ? (
        <Face title={t("team.silent")} text={t("team.silent.text")} />
      ) : (
        <Sequence
          arrows={model.arrows.value}
          name={side}
          icon={(s) => (s === "board" ? "list" : rows.some((m) => m.kind === "team" && `@${m.route}` === s) ? "team" : "person")}
          picked={picked}
          open={pick}
          look={(from, to) => model.look(from, to)}
          choose={(s) => choose(s.startsWith("@") ? s.slice(1) : "")}
          follow={!model.inPast}
        />
      )}
    </>
  );
}

/** The conversation of the whole team, or of one member. */
function Said(p: { model: LogModel; member: string; rows: readonly MemberRow[]; asked: readonly ListedQuestion[] }): JSX.Element {
  const { talk } = p.model;
  const { member } = p;
  if (!talk.keys.value || talk.state.value.of !== member) return <Skeleton />;
  const below = (route: string | undefined) => member === "" || route === member || route?.startsWith(`${member}/`);
  const asked = p.asked.filter((q) => below(q.asker));
  const row = p.rows.find((m) => m.route === member);
  if (member !== "" && row?.kind !== "team" && talk.keys.value.length > 0)
    return <Talk key={member} model={p.model} live={!p.model.inPast} asked={asked} />;
  return member === "" ? (
    <Messages model={p.model} questions={asked} />
  ) : (
    <div class="talk">
      <div class="column">
        {asked.length === 0 && <Face title={t("team.quiet", { name: row?.name ?? member })} />}
        {asked.map((q) => (
          <QuestionCard key={q.id} ask={q} title />
        ))}
      </div>
    </div>
  );
}

type Message = TeamView["messages"][number];

function Messages({ model, questions }: { model: LogModel; questions: readonly ListedQuestion[] }): JSX.Element {
  const keys = model.talk.keys.value ?? [];
  const shown = useGradually(keys, (key) => weight(model.talk.item(key).peek()));
  const { earlier, later } = model.talk.state.value;
  return (
    <Scroll label={t("team.messages")} keys={keys} shown={shown} whole={!later}>
      {keys.length === 0 && questions.length === 0 && <Face title={t("talk.empty")} />}
      {earlier && (
        <button type="button" class="earlier" onClick={() => model.move("earlier")}>
          {t("talk.earlier")}
        </button>
      )}
      {shown.map((key) => (
        <MessageCard key={key} of={model.talk.item<Message>(key)} />
      ))}
      {later && <Later move={(to) => model.move(to)} />}
      {questions.map((q) => (
        <QuestionCard key={q.id} ask={q} title />
      ))}
    </Scroll>
  );
}

function MessageCard({ of }: { of: Signal<Message> }): JSX.Element {
  const m = of.value;
  return (
    <article class={m.to === undefined ? "item answer" : "item message"}>
      <h2>
        <Text>{m.from || t(m.board ? "team.system" : "team.people")}</Text>
        {m.to !== undefined && (
          <>
            {" → "}
            <Text>{m.to}</Text>
          </>
        )}
      </h2>
      <Reasoning of={m} />
      {(m.text !== "" || !m.reasoning) && <Markdown text={m.text} done={m.done} />}
      {m.stop && <Stopped stop={m.stop} />}
    </article>
  );
}

/** So many members are in the menu; the tree has the others. */
const mostChoices = 40;

/** What is being written to teams: a sign-in shows the room anew. */
const drafts = new Map<string, string>();

/** Where people write to a member; without a choice the coordinator gets it. A fresh team has an example of a message. */
function ToMember({ id, members, to, fresh }: { id: string; members: readonly MemberRow[]; to: string; fresh: boolean }): JSX.Element {
  const [text, setDraft] = useState(drafts.get(id) ?? "");
  const setText = (next: string | ((now: string) => string)) =>
    setDraft((now) => {
      const text = typeof next === "string" ? next : next(now);
      drafts.set(id, text);
      return text;
    });
  const [target, setTarget] = useState(to);
  useEffect(() => setTarget(to), [to]);
  const send = (content: string) => {
    setText("");
    messageTeam(id, content, target).catch((error) => {
      say(reason(error));
      setText((now) => now || content);
    });
  };
  const some = members.slice(0, mostChoices).map((m) => m.route);
  const choices = target === "" || some.includes(target) ? some : [target, ...some];
  return (
    <Writing text={text} placeholder={t("team.placeholder", { name: target || t("team.coordinator") })} change={setText} send={send}>
      <label class="check">
        {t("team.to")}
        <select value={target} onChange={(e) => setTarget(e.currentTarget.value)}>
          <option value="">{t("team.coordinator")}</option>
          {choices.map((m) => (
            <option key={m} value={m}>
              {m}
            </option>
          ))}
        </select>
      </label>
      {fresh && text === "" && target === "" && members.some((m) => m.route === "Writer") && (
        <button type="button" class="idea" onClick={() => setText(t("team.first"))}>
          {t("team.first")}
        </button>
      )}
      <span class="grow" />
    </Writing>
  );
}
