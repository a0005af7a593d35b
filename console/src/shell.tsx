import { effect, useComputed } from "@preact/signals";
import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import {
  begin,
  clock,
  epoch,
  login,
  nextTheme,
  nextTongue,
  nextZone,
  notice,
  now,
  signedIn,
  signOut,
  theme,
  tongue,
  waiting,
  zone,
} from "./app.ts";
import { choose, compareChosen } from "./model/compare.ts";
import { type List, questionList } from "./model/lists.ts";
import { connection, onChange, watch } from "./model/live.ts";
import { Dialog, Face } from "./parts/basics.tsx";
import { answerKey, Hold } from "./parts/hold.ts";
import { Icon, type IconName, Logo } from "./parts/icons.tsx";
import { Link } from "./parts/link.tsx";
import { Login } from "./parts/login.tsx";
import { Palette } from "./parts/palette.tsx";
import { Compare } from "./rooms/compare.tsx";
import { Installation, turnTab } from "./rooms/installation.tsx";
import { Questions } from "./rooms/questions.tsx";
import { Playground, SessionRoom, turn } from "./rooms/session.tsx";
import { Sessions } from "./rooms/sessions.tsx";
import { Swarm, turnSwarm } from "./rooms/swarm.tsx";
import { TaskRoom, turnTask } from "./rooms/task.tsx";
import { TeamRoom, turnTeam } from "./rooms/team.tsx";
import { Teams } from "./rooms/teams.tsx";
import { go, room, route } from "./route.ts";
import { t, type Word } from "./words.ts";

type RoomName = Parameters<typeof room>[0];

const rooms: readonly { name: RoomName; key: string; icon: IconName }[] = [
  { name: "playground", key: "p", icon: "play" },
  { name: "sessions", key: "s", icon: "list" },
  { name: "questions", key: "q", icon: "hand" },
  { name: "teams", key: "m", icon: "team" },
  { name: "swarm", key: "w", icon: "swarm" },
  { name: "installation", key: "i", icon: "gear" },
];

/** The frame of all rooms. */
export function Shell(): JSX.Element {
  const questions = useMemo(() => questionList(), [epoch.value]);
  useEffect(watch, []);
  useEffect(() => onChange((e) => e === undefined && void begin()), []);
  useEffect(() => {
    const end = notify(questions);
    return () => {
      end();
      questions.close();
    };
  }, [questions]);
  const [dialog, show] = useState<"palette" | "keys" | undefined>(undefined);
  useEffect(() => onKeys((d) => show(d)), []);
  const r = route.value;
  const inSession = r.room === "sessions" && r.id !== undefined;
  return (
    <div class={inSession ? "shell in-session" : "shell"}>
      <a class="skip" href="#main">
        {t("nav.skip")}
      </a>
      <nav aria-label={t("nav.rooms")}>
        <Link class="brand" to={room("playground")} label={t("app.name")}>
          <Logo />
          <span>{t("app.name")}</span>
        </Link>
        <button type="button" class="search" onClick={() => show("palette")}>
          <Icon name="search" />
          <span>{t("palette.open")}</span>
          <kbd>{mac ? "⌘" : "Ctrl"} K</kbd>
        </button>
        <ul>
          {rooms.map((x) => (
            <li key={x.name}>
              <Link to={room(x.name)} current={r.room === x.name || (r.room === "task" && x.name === "swarm")}>
                <Icon name={x.icon} />
                <span>{t(`nav.${x.name}` as Word)}</span>
                {x.name === "questions" && waiting.value > 0 && <b class="badge">{waiting.value > 99 ? "99+" : waiting.value}</b>}
              </Link>
            </li>
          ))}
        </ul>
        <div class="foot">
          <Connection />
          <button type="button" class="quiet" onClick={nextTheme} title={t(`theme.${theme.value}` as Word)}>
            <Icon name="sun" />
            <span>{t(`theme.${theme.value}` as Word)}</span>
          </button>
          <button type="button" class="quiet" onClick={nextTongue} title={t(`language.${tongue.value}` as Word)}>
            <Icon name="globe" />
            <span>{t(`language.${tongue.value}` as Word)}</span>
          </button>
          <button type="button" class="quiet" onClick={nextZone} title={t(`zone.${zone.value}` as Word)}>
            <Icon name="clock" />
            <span>{t(`zone.${zone.value}` as Word)}</span>
          </button>
          {signedIn.value && (
            <button type="button" class="quiet" onClick={signOut}>
              <Icon name="person" />
              <span>{t("login.out")}</span>
            </button>
          )}
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <Room questions={questions} />
      </main>
      <div class="notices" role="status">
        {notice.value && <p>{notice.value}</p>}
      </div>
      {login.value !== "no" && <Login />}
      {dialog === "palette" && <Palette close={() => show(undefined)} />}
      {dialog === "keys" && <Keys close={() => show(undefined)} />}
    </div>
  );
}

const mac = navigator.platform.startsWith("Mac");

function Room({ questions }: { questions: List<ListedQuestion> }): JSX.Element {
  const r = route.value;
  switch (r.room) {
    case "playground":
      return <Playground key={epoch.value} />;
    case "sessions":
      return (
        <div class="split" key={epoch.value}>
          <Sessions at={r} narrow={r.id !== undefined} />
          {r.id !== undefined && <SessionRoom key={r.id} at={{ ...r, id: r.id }} />}
        </div>
      );
    case "compare":
      return <Compare key={epoch.value} at={r} />;
    case "questions":
      return <Questions list={questions} />;
    case "teams":
      return r.id === undefined ? (
        <Teams key={epoch.value} />
      ) : (
        <TeamRoom key={`${r.id} ${epoch.value}`} at={{ ...r, id: r.id }} questions={questions} />
      );
    case "swarm":
      return <Swarm key={epoch.value} at={r} />;
    case "task":
      return <TaskRoom key={`${r.id} ${epoch.value}`} at={r} questions={questions} />;
    case "installation":
      return <Installation key={epoch.value} at={r} />;
    case "nowhere":
      return (
        <Face
          title={t("nowhere.title")}
          text={t("nowhere.text")}
          action={{ text: t("nowhere.action"), go: () => go(room("playground")) }}
        />
      );
  }
}

/** After so long without a connection the page says so, and later since when. */
const quietFor = 2000;
const reconnectingFor = 10_000;

function Connection(): JSX.Element {
  const text = useComputed(() => {
    const { up, since } = connection.value;
    if (up) return { look: "up", text: t("connection.up") };
    const lost = now.value - since;
    if (lost < quietFor) return { look: "up", text: t("connection.up") };
    if (lost < reconnectingFor) return { look: "lost", text: t("connection.lost") };
    return { look: "away", text: t("connection.away", { time: clock(since) }) };
  }).value;
  return (
    <span class={`connection ${text.look}`} role="status">
      <i />
      <span>{text.text}</span>
    </span>
  );
}

function Keys({ close }: { close: () => void }): JSX.Element {
  return (
    <Dialog label={t("keys.title")} close={close} class="keys">
      <h2>{t("keys.title")}</h2>
      <ul>
        {(["rooms", "search", "rows", "answer", "views", "time", "compare", "theme"] as const).map((k) => (
          <li key={k}>{t(`keys.${k}`)}</li>
        ))}
      </ul>
      <button type="button" onClick={close}>
        {t("keys.close")}
      </button>
    </Dialog>
  );
}

/** The keys that work in all rooms. None acts in a field, or with an open dialog. */
function onKeys(show: (d: "palette" | "keys" | undefined) => void): () => void {
  let going = 0;
  const press = (e: KeyboardEvent) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault();
      show("palette");
      return;
    }
    const at = e.target as HTMLElement;
    const field = at.isContentEditable || /^(TEXTAREA|SELECT)$/.test(at.tagName) || (at instanceof HTMLInputElement && at.type !== "range");
    if (field || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.repeat && (e.key === "y" || e.key === "n")) return; // held
    hold.release();
    const to = Date.now() - going < 1500 ? rooms.find((x) => x.key === e.key) : undefined;
    going = e.key === "g" ? Date.now() : 0;
    if (to) go(room(to.name));
    else if (!act(e.key, show)) return;
    e.preventDefault();
  };
  const release = () => hold.release();
  const leave = new AbortController();
  addEventListener("keydown", press, leave);
  for (const end of ["keyup", "blur", "focusin", "pointerdown"]) addEventListener(end, release, leave);
  return () => {
    release();
    leave.abort();
  };
}

/** The session that is shown. */
function shownSession(): string | undefined {
  const r = route.value;
  return r.room === "sessions" ? r.id : undefined;
}

function act(key: string, show: (d: "palette" | "keys") => void): boolean {
  switch (key) {
    case "?":
      show("keys");
      return true;
    case "/": {
      const field = document.querySelector<HTMLElement>("main [data-search], main textarea");
      field?.focus();
      return field !== null;
    }
    case "d":
      return compareChosen(shownSession());
    case "x": {
      const session = document.activeElement?.closest(".sessions") ? undefined : shownSession();
      if (session) choose(session);
      return session !== undefined;
    }
    case "t":
      nextTheme();
      return true;
    case "z":
      nextZone();
      return true;
    case "[":
      turn(-1);
      turnTab(-1);
      turnSwarm(-1);
      turnTask(-1);
      turnTeam(-1);
      return true;
    case "]":
      turn(1);
      turnTab(1);
      turnSwarm(1);
      turnTask(1);
      turnTeam(1);
      return true;
    case "y":
    case "n":
      return answerWith(key);
  }
  return false;
}

const hold = new Hold();

function answerWith(key: "y" | "n"): boolean {
  const k = answerKey(key, document.activeElement, document);
  if (!k) return false;
  if (k.do === "focus") {
    k.card.focus();
    k.card.scrollIntoView({ block: "nearest" });
  } else if (k.do === "press") k.button.click();
  else {
    k.button.classList.add("held");
    hold.press(
      () => k.button.isConnected && k.button.click(),
      () => k.button.classList.remove("held"),
    );
  }
  return true;
}

/** Tells of new questions while nobody looks: in the title, and with a notification where it is allowed. */
function notify(list: List<ListedQuestion>): () => void {
  let known: Set<string> | undefined;
  return effect(() => {
    const rows = list.rows.value;
    if (!rows) return;
    waiting.value = rows.length;
    const fresh = known === undefined ? [] : rows.filter((q) => !known?.has(q.id));
    known = new Set(rows.map((q) => q.id));
    const first = fresh[0];
    if (!first || !document.hidden || typeof Notification === "undefined" || Notification.permission !== "granted") return;
    new Notification(t("app.name"), { body: t("questions.notification", { what: first.tool ?? first.scope }), tag: "waggle-questions" });
  });
}
