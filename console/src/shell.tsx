import { effect, useComputed } from "@preact/signals";
import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { begin, clock, epoch, login, notice, now, waiting } from "./app.ts";
import { plain } from "./fold/text.ts";
import { onKeys, over, rooms, typedEarly } from "./keys.ts";
import { sample } from "./log/sample.ts";
import { awake } from "./model/inbox.ts";
import { type List, questionList } from "./model/lists.ts";
import { connection, onChange, watch } from "./model/live.ts";
import { Account } from "./parts/account.tsx";
import { arrive, placeOf } from "./parts/arrive.ts";
import { Dialog, Face } from "./parts/basics.tsx";
import { Icon, Logo } from "./parts/icons.tsx";
import { later } from "./parts/later.tsx";
import { Link } from "./parts/link.tsx";
import { Login } from "./parts/login.tsx";
import { asksFor } from "./parts/question.tsx";
import { Questions } from "./rooms/questions.tsx";
import { SampleRoom } from "./rooms/sample.tsx";
import { SessionRoom } from "./rooms/session.tsx";
import { Sessions } from "./rooms/sessions.tsx";
import { Start } from "./rooms/start.tsx";
import { TeamRoom } from "./rooms/team.tsx";
import { Teams } from "./rooms/teams.tsx";
import { go, room, route } from "./route.ts";
import { t, type Word } from "./words.ts";

const Compare = later(() => import("./rooms/compare.tsx").then((m) => m.Compare));
const Installation = later(() => import("./rooms/installation.tsx").then((m) => m.Installation));
const Swarm = later(() => import("./rooms/swarm.tsx").then((m) => m.Swarm));
const TaskRoom = later(() => import("./rooms/task.tsx").then((m) => m.TaskRoom));
const palette = () =>
  import("./parts/palette.tsx").then(
    (m) => m.Palette,
    (error) => {
      typedEarly();
      throw error;
    },
  );
const Palette = later(palette, true);
const More = later(() => import("./parts/more.tsx").then((m) => m.More), true);

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
  useEffect(onKeys, []);
  const show = (what: typeof over.value) => {
    over.value = what;
  };
  useEffect(() => {
    // Typing right after the key loses nothing. Without the server it is loaded when it is opened.
    const timer = setTimeout(() => void palette().catch(() => undefined), unhurried);
    return () => clearTimeout(timer);
  }, []);
  const r = route.value;
  const place = placeOf(r);
  const was = useRef(place);
  useEffect(() => {
    if (was.current === place) return;
    const end = arrive(was.current, place);
    was.current = place;
    return end;
  }, [place]);
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
          {rooms.map((x, i) => (
            <li key={x.name} class={x.group === "operate" ? "rest" : undefined}>
              {x.group !== rooms[i - 1]?.group && <small class="group">{t(`nav.${x.group}`)}</small>}
              <Link to={room(x.name)} current={r.room === x.name || (r.room === "task" && x.name === "swarm")}>
                <Icon name={x.icon} />
                <span>{t(`nav.${x.name}` as Word)}</span>
                {x.name === "questions" && waiting.value > 0 && <b class="badge">{waiting.value > 99 ? "99+" : waiting.value}</b>}
              </Link>
            </li>
          ))}
          <li class="more">
            <button type="button" class="quiet" aria-haspopup="dialog" onClick={() => show("more")}>
              <Icon name="dots" />
              <span>{t("menu.more")}</span>
            </button>
          </li>
        </ul>
        <div class="foot">
          <Connection />
          <Account keys={() => show("keys")} />
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <Room questions={questions} />
      </main>
      <div class="notices" role="status">
        {notice.value && <p>{notice.value}</p>}
      </div>
      {login.value !== "no" && <Login />}
      {over.value === "palette" && <Palette close={() => show(undefined)} />}
      {over.value === "keys" && <Keys close={() => show(undefined)} />}
      {over.value === "more" && <More close={() => show(undefined)} search={() => show("palette")} />}
    </div>
  );
}

const mac = navigator.platform.startsWith("Mac");

function Room({ questions }: { questions: List<ListedQuestion> }): JSX.Element | null {
  const r = route.value;
  switch (r.room) {
    case "playground":
      return <Start key={epoch.value} />;
    case "sessions":
      return (
        <div class="split" key={epoch.value}>
          <Sessions at={r} narrow={r.id !== undefined} />
          {r.id === sample ? <SampleRoom at={r} /> : r.id !== undefined && <SessionRoom key={r.id} at={{ ...r, id: r.id }} />}
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
          heading
          title={t("nowhere.title")}
          text={t("nowhere.text")}
          action={{ text: t("nowhere.action"), go: () => go(room("playground")) }}
        />
      );
  }
}

/** What may be needed soon is loaded when the page has done its first work, after so many milliseconds. */
const unhurried = 1000;

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

/** Tells of new questions while nobody looks: in the title, and with a notification where it is allowed. */
function notify(list: List<ListedQuestion>): () => void {
  const open = awake(list.rows);
  let known: Set<string> | undefined;
  return effect(() => {
    const rows = open.value;
    if (!rows) return;
    waiting.value = rows.length;
    const fresh = known === undefined ? [] : rows.filter((q) => !known?.has(q.id));
    known = new Set(rows.map((q) => q.id));
    const first = fresh[0];
    if (!first || !document.hidden || typeof Notification === "undefined" || Notification.permission !== "granted") return;
    const body =
      fresh.length > 1
        ? t("questions.notification.several", { n: fresh.length })
        : t("questions.notification", { what: asksFor(first), who: plain(first.asker || first.principal || t("app.name")) });
    const told = new Notification(t("app.name"), { body, tag: "waggle-questions" });
    told.onclick = () => {
      window.focus();
      go(room("questions"));
      told.close();
    };
  });
}
