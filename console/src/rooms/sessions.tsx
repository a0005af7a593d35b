import type { SessionSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { epoch, title } from "../app.ts";
import { choose, chosen } from "../model/compare.ts";
import { sessionList } from "../model/lists.ts";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { Rows } from "../parts/rows.tsx";
import { Search } from "../parts/search.tsx";
import { go, type Route, room } from "../route.ts";
import { t } from "../words.ts";

/** All sessions that the principal may see, the newest change first, live. */
export function Sessions({ at, narrow }: { at: Extract<Route, { room: "sessions" }>; narrow: boolean }): JSX.Element {
  const list = useMemo(() => sessionList(at), [at.q, at.state, epoch.value]);
  useEffect(() => () => list.close(), [list]);
  const [q, setQ] = useState(at.q);
  useEffect(() => {
    if (at.id === undefined) title.value = t("sessions.title");
  }, [at.id]);
  useEffect(() => {
    if (q === at.q) return;
    const timer = setTimeout(() => go({ ...at, q }, "replace"), 250);
    return () => clearTimeout(timer);
  }, [q]);
  const [over, setOver] = useState(-1);
  const rows = list.rows.value;
  const current = rows?.findIndex((s) => s.session_id === at.id) ?? -1;
  const picked = over >= 0 ? over : current;
  const open = (s: SessionSummary | undefined) => s && go({ ...room("sessions"), id: s.session_id, q: at.q, state: at.state } as Route);
  const filtered = at.q !== "" || at.state !== "";
  return (
    <section class="sessions" aria-label={t("sessions.title")}>
      <header class="head">
        {!narrow && <h1>{t("sessions.title")}</h1>}
        <Search label={t("sessions.search")} value={q} change={setQ}>
          <select
            aria-label={t("sessions.state")}
            value={at.state}
            onChange={(e) => go({ ...at, state: e.currentTarget.value }, "replace")}
          >
            <option value="">{t("sessions.any")}</option>
            <option value="running">{t("state.running")}</option>
            <option value="waiting">{t("state.waiting")}</option>
            <option value="failed">{t("state.failed")}</option>
            <option value="unknown_outcome">{t("state.unknown")}</option>
            <option value="partly">{t("state.partly")}</option>
            <option value="cancelled">{t("state.cancelled")}</option>
            <option value="completed">{t("state.completed")}</option>
          </select>
        </Search>
      </header>
      {list.error.value && !rows ? (
        <Failure error={list.error.value} again={() => void list.read()} />
      ) : !rows ? (
        <Skeleton rows={8} />
      ) : rows.length === 0 ? (
        filtered && list.more.value ? (
          <Face title={t("face.newest", { n: list.searched.value })} action={{ text: t("face.older"), go: () => void list.next() }} />
        ) : filtered ? (
          <Face
            title={t("face.nothing")}
            action={{ text: t("face.clear"), go: () => [setQ(""), go({ ...at, q: "", state: "" }, "replace")] }}
          />
        ) : (
          <Face
            title={t("sessions.empty")}
            text={t("sessions.empty.text")}
            action={{ text: t("nowhere.action"), go: () => go(room("playground")) }}
          />
        )
      ) : (
        <div class="grow">
          <Rows
            rows={rows}
            height={60}
            label={t("sessions.title")}
            picked={picked}
            pick={setOver}
            open={(i) => {
              setOver(-1);
              open(rows[i]);
            }}
            mark={(i) => rows[i] && choose(rows[i].session_id)}
            row={(s) => <Row s={s} />}
          />
        </div>
      )}
      {list.more.value && rows?.length !== 0 && (
        <button type="button" class="more" onClick={() => void list.next()}>
          {t("sessions.more")}
        </button>
      )}
    </section>
  );
}

function Row({ s }: { s: SessionSummary }): JSX.Element {
  const ended = s.state ?? "idle";
  const state = s.status === "closed" && (ended === "idle" || ended === "completed") ? "closed" : ended;
  const runs = s.runs ?? 0;
  return (
    <>
      <span class="title">
        {chosen.value.includes(s.session_id) && (
          <b class="chosen-run">
            <Icon name="compare" />
            <span class="only-read">{t("compare.button")}</span>
          </b>
        )}
        <Text>{s.question || t("sessions.untitled")}</Text>
      </span>
      <Time at={s.updated_at} />
      <span class="meta">
        <StateChip state={state} small />
        {runs === 1 ? t("sessions.run") : t("sessions.runs", { n: runs })} ·{" "}
        {s.last_seq === 1 ? t("sessions.event") : t("sessions.events", { n: s.last_seq })}
        {s.dialect && (
          <>
            {" · "}
            <Text most={24}>{s.dialect}</Text>
          </>
        )}
        {s.principal && (
          <>
            {" · "}
            <Text most={32}>{s.principal}</Text>
          </>
        )}
      </span>
    </>
  );
}
