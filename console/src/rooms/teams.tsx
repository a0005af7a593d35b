import type { Signal } from "@preact/signals";
import type { ListedQuestion, MemberView, TeamDefinition, TeamView } from "@waggle-dev/client";
import type { TeamView as Shown, TeamMember } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { client, epoch, mayAct, reason, say, title } from "../app.ts";
import { weight } from "../log/window.ts";
import { controlTeam, messageTeam, startTeam } from "../model/act.ts";
import { type List, teamList } from "../model/lists.ts";
import { onChange, soon } from "../model/live.ts";
import { LogModel } from "../model/log.ts";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../parts/basics.tsx";
import { useGradually } from "../parts/gradually.ts";
import { Head } from "../parts/head.tsx";
import { Icon } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { QuestionCard } from "../parts/question.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Later } from "../parts/talk.tsx";
import { Writing } from "../parts/writing.tsx";
import { go, type Route, room } from "../route.ts";
import { t } from "../words.ts";
import { Log } from "./log.tsx";

type TeamRoute = Extract<Route, { room: "teams" }>;

/** A team that works with every model, the built-in one included. Its writer asks before it writes. */
const example: TeamDefinition = {
  name: "pair",
  coordinator: "Lead",
  members: [
    { name: "Lead", role: "talks to people and gives the work to Writer" },
    { name: "Writer", role: "writes files", tools: ["workspace/*"] },
  ],
};

/** All teams of the tenant, and a way to start one. */
export function Teams(): JSX.Element {
  const list = useMemo(() => teamList(), [epoch.value]);
  const [named, setNamed] = useState<readonly string[]>([]);
  useEffect(() => () => list.close(), [list]);
  useEffect(() => {
    title.value = t("teams.title");
    client.call<{ named?: string[] }>("GET", "/api/v1/teams?limit=1").then(
      (page) => setNamed(page.named ?? []),
      () => {},
    );
  }, [list]);
  const start = (team: TeamDefinition | { named: string }) => {
    startTeam(team).then(
      (id) => go({ room: "teams", id, view: "messages" }),
      (error) => say(reason(error)),
    );
  };
  const rows = list.rows.value;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="page" tabIndex={0} aria-label={t("teams.title")}>
      <h1>{t("teams.title")}</h1>
      {mayAct.value && (
        <div class="actions">
          <button type="button" onClick={() => start(example)}>
            <Icon name="team" />
            {t("teams.try")}
          </button>
          {named.map((n) => (
            <button key={n} type="button" onClick={() => start({ named: n })}>
              {t("teams.start", { name: n })}
            </button>
          ))}
        </div>
      )}
      {list.error.value && !rows ? (
        <Failure error={list.error.value} again={() => void list.read()} />
      ) : !rows ? (
        <Skeleton rows={3} />
      ) : rows.length === 0 ? (
        <Face title={t("teams.empty")} text={t("teams.empty.text")} />
      ) : (
        <ul class="teams">
          {rows.map((team) => (
            <li key={team.team_id}>
              <Link to={{ room: "teams", id: team.team_id, view: "messages" }}>
                <b>
                  <Text>{team.name}</Text>
                </b>
                <StateChip state={stateOf(team.closed ? "closed" : team.status)} small />
                <span>{t("teams.members", { n: (team.members ?? []).length })}</span>
                <Time at={team.created_at} />
              </Link>
            </li>
          ))}
        </ul>
      )}
      {list.more.value && (
        <button type="button" onClick={() => void list.next()}>
          {t("teams.more")}
        </button>
      )}
    </section>
  );
}

/** A word of the log for a state, as a chip shows it. */
function stateOf(status: string): string {
  switch (status.toLowerCase()) {
    case "":
    case "idle":
    case "not_started":
      return "idle";
    case "running":
    case "bootstrapping":
    case "processing":
    case "in_progress":
    case "processing_user_input":
    case "awaiting_llm_response":
    case "analyzing_llm_response":
    case "executing_tool":
    case "processing_tool_result":
      return "running";
    case "awaiting_tool_approval":
    case "waiting":
    case "blocked":
      return "waiting";
    case "error":
    case "failed":
      return "failed";
    case "shutdown_complete":
    case "closed":
      return "closed";
  }
  return status.toLowerCase();
}

/** One team: its members, what they say to each other, and what they ask. */
export function TeamRoom({ at, questions }: { at: TeamRoute & { id: string }; questions: List<ListedQuestion> }): JSX.Element {
  const model = useMemo(() => new LogModel("team", at.id, { part: at.view, at: at.at }), [at.id]);
  const [picked, pick] = useState(0);
  const team = useTeam(at.id);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    model.seek(at.at);
  }, [model, at.at]);
  useEffect(() => model.show(at.view), [model, at.view]);
  useEffect(() => {
    title.value = team?.name ?? t("teams.title");
  }, [team?.name]);
  const back = { label: t("team.back"), go: () => go(room("teams")) };
  if (model.error.value && model.head === 0) {
    if (model.missing) return <Face title={t("team.none")} text={t("team.none.text")} action={{ text: back.label, go: back.go }} />;
    return <Failure error={model.error.value} again={() => model.read()} />;
  }
  const { status, members } = model.summary.value;
  const past = model.inPast;
  const { at: _, ...rest } = at;
  const seek = (to: number | undefined, how: "passes" | "stays") => {
    model.seek(to);
    if (how === "stays") go(to === undefined ? rest : { ...rest, at: to }, "replace");
  };
  const control = (what: "pause" | "resume" | "stop") => void controlTeam(at.id, what).catch((error) => say(reason(error)));
  const asked = (questions.rows.value ?? []).filter((q) => q.team_id === at.id);
  return (
    <section class={past ? "session past" : "session"} aria-label={team?.name ?? t("teams.title")}>
      <Head
        model={model}
        name={team?.name ?? ""}
        label={t("team.views")}
        state={<StateChip state={stateOf(asked.length > 0 ? "waiting" : status)} />}
        back={back}
        views={[
          { id: "messages", text: t("team.messages") },
          { id: "log", text: t("session.log") },
        ]}
        view={at.view}
        turn={(to) => go({ ...at, view: to }, "replace")}
        seek={seek}
      >
        {mayAct.value && !past && (
          <>
            <button type="button" class="quiet" onClick={() => control(status === "paused" ? "resume" : "pause")}>
              {t(status === "paused" ? "team.resume" : "team.pause")}
            </button>
            <button type="button" class="quiet" onClick={() => control("stop")}>
              {t("team.stop")}
            </button>
          </>
        )}
      </Head>
      <div class="view" id="view" role="tabpanel" aria-busy={model.behind} aria-labelledby={`tab-${at.view}`}>
        {(at.view === "log" ? model.head === 0 : !model.talk.keys.value) ? (
          <Skeleton />
        ) : at.view === "log" ? (
          <Log model={model} picked={picked} pick={pick} />
        ) : (
          <div class="team">
            <Members team={team} states={members} />
            <Messages model={model} questions={past ? [] : asked} />
          </div>
        )}
      </div>
      {!past && at.view === "messages" && <ToMember id={at.id} members={agents(team)} />}
    </section>
  );
}

/** The team as the service has it, read again when something has happened. */
function useTeam(id: string): TeamView | undefined {
  const [team, set] = useState<TeamView | undefined>(undefined);
  useEffect(() => {
    let over = false;
    const read = async () => {
      const answer = await client.call<TeamView>("GET", `/api/v1/teams/${encodeURIComponent(id)}`).catch(() => undefined);
      if (!over && answer) set(answer);
    };
    void read();
    const end = onChange(soon(read, 500));
    return () => {
      over = true;
      end();
    };
  }, [id]);
  return team;
}

function agents(team: TeamView | undefined): string[] {
  return (team?.members ?? []).filter((m: MemberView) => m.kind === "agent").map((m) => m.route);
}

function Members({ team, states }: { team: TeamView | undefined; states: readonly TeamMember[] }): JSX.Element {
  const now = new Map(states.map((m) => [m.route, m.status]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <aside class="members" tabIndex={0} aria-label={t("team.members")}>
      <h2>{t("team.members")}</h2>
      <ul>
        {(team?.members ?? []).map((m) => (
          <li key={m.route} style={{ paddingInlineStart: `${(m.route.split("/").length - 1) * 16}px` }}>
            <Icon name={m.kind === "team" ? "team" : "person"} />
            <Text>{m.name}</Text>
            {m.kind === "agent" && <StateChip state={stateOf(now.get(m.route) ?? m.status)} small />}
          </li>
        ))}
      </ul>
      {(team?.board ?? []).length > 0 && (
        <>
          <h2>{t("team.board")}</h2>
          <ul class="board">
            {team?.board.map((b) => (
              <li key={b.task_id}>
                <span>
                  <Text>{b.task_name}</Text>
                  <small>
                    <Text>{b.assignee_name}</Text>
                  </small>
                </span>
                <StateChip state={stateOf(b.status)} small />
              </li>
            ))}
          </ul>
        </>
      )}
    </aside>
  );
}

type Said = Shown["messages"][number];

function Messages({ model, questions }: { model: LogModel; questions: readonly ListedQuestion[] }): JSX.Element {
  const keys = model.talk.keys.value ?? [];
  const shown = useGradually(keys, (key) => weight(model.talk.item(key).peek()));
  const { earlier, later } = model.talk.state.value;
  return (
    <Scroll label={t("team.messages")} anchor={shown[0] ?? ""} whole={!later}>
      {keys.length === 0 && questions.length === 0 && <Face title={t("talk.empty")} />}
      {earlier && (
        <button type="button" class="earlier" onClick={() => model.move("earlier")}>
          {t("talk.earlier")}
        </button>
      )}
      {shown.map((key) => (
        <Message key={key} of={model.talk.item<Said>(key)} />
      ))}
      {later && <Later move={(to) => model.move(to)} />}
      {questions.map((q) => (
        <QuestionCard key={q.id} ask={q} title />
      ))}
    </Scroll>
  );
}

function Message({ of }: { of: Signal<Said> }): JSX.Element {
  const m = of.value;
  return (
    <article class={m.to === undefined ? "item answer" : "item message"}>
      <h3>
        <Text>{m.from || t("team.people")}</Text>
        {m.to !== undefined && (
          <>
            {" → "}
            <Text>{m.to}</Text>
          </>
        )}
      </h3>
      <Markdown text={m.text} done={m.done} />
    </article>
  );
}

/** Where people write to a member; without a choice the coordinator gets it. */
function ToMember({ id, members }: { id: string; members: readonly string[] }): JSX.Element {
  const [text, setText] = useState("");
  const [to, setTo] = useState("");
  const send = (content: string) => {
    setText("");
    messageTeam(id, content, to).catch((error) => {
      say(reason(error));
      setText((now) => now || content);
    });
  };
  return (
    <Writing text={text} placeholder={t("team.placeholder", { name: to || (members[0] ?? "") })} change={setText} send={send}>
      <label class="check">
        {t("team.to")}
        <select value={to} onChange={(e) => setTo(e.currentTarget.value)}>
          {members.map((m, i) => (
            <option key={m} value={i === 0 ? "" : m}>
              {m}
            </option>
          ))}
        </select>
      </label>
      {text === "" && (
        <button type="button" class="quiet" onClick={() => setText(t("team.first"))}>
          {t("team.first")}
        </button>
      )}
      <span class="grow" />
    </Writing>
  );
}
