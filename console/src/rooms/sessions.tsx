import type { SessionSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { density, epoch, title } from "../app.ts";
import { newest, type Order, ordered, stateOf } from "../model/columns.ts";
import { choose, chosen } from "../model/compare.ts";
import { countOf, sessionCounts } from "../model/counts.ts";
import { sessionList } from "../model/lists.ts";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { wide } from "../parts/menu.tsx";
import { Rows } from "../parts/rows.tsx";
import { Search } from "../parts/search.tsx";
import { Columns, Header, Line, Several, Views } from "../parts/sessions.tsx";
import { go, type Route, room } from "../route.ts";
import { t } from "../words.ts";

/** The states for which sessions are filtered, and their words. */
const states = [
  ["running", "state.running"],
  ["waiting", "state.waiting"],
  ["failed", "state.failed"],
  ["unknown_outcome", "state.unknown"],
  ["partly", "state.partly"],
  ["cancelled", "state.cancelled"],
  ["completed", "state.completed"],
] as const;

/** All sessions that the principal may see, live: a table where there is room for one, else a list. */
export function Sessions({ at, narrow }: { at: Extract<Route, { room: "sessions" }>; narrow: boolean }): JSX.Element {
  const list = useMemo(() => sessionList(at), [at.q, at.state, epoch.value]);
  useEffect(() => () => list.close(), [list]);
  const table = wide.value && !narrow;
  const counted = useMemo(() => (table ? sessionCounts(at.q) : undefined), [table, at.q, epoch.value]);
  useEffect(() => () => counted?.close(), [counted]);
  const counts = counted?.answer.value;
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
  const [order, sort] = useState<Order>(newest);
  const [several, pick] = useState<ReadonlySet<string>>(new Set());
  const found = list.rows.value;
  const rows = useMemo(() => found && (table ? ordered(found, order) : found), [found, table, order]);
  const current = rows?.findIndex((s) => s.session_id === at.id) ?? -1;
  const picked = over >= 0 ? over : current;
  const open = (s: SessionSummary | undefined) => s && go({ ...room("sessions"), id: s.session_id, q: at.q, state: at.state } as Route);
  const turn = (id: string) => {
    const next = new Set(several);
    if (!next.delete(id)) next.add(id);
    pick(next);
  };
  const filter = (q: string, state: string) => {
    setQ(q);
    go({ ...at, q, state }, "replace");
  };
  return (
    <section class={table ? "sessions table" : "sessions"} aria-label={t("sessions.title")}>
      <header class="head">
        {!narrow && <h1>{t("sessions.title")}</h1>}
        <Search label={t("sessions.search")} short={table ? undefined : t("sessions.search.short")} value={q} change={setQ}>
          {table ? (
            <>
              <Views q={at.q} state={at.state} show={filter} />
              <Columns />
            </>
          ) : (
            <select
              aria-label={t("sessions.state")}
              value={at.state}
              onChange={(e) => go({ ...at, state: e.currentTarget.value }, "replace")}
            >
              <option value="">{t("sessions.any")}</option>
              {states.map(([value, word]) => (
                <option key={value} value={value}>
                  {t(word)}
                </option>
              ))}
            </select>
          )}
        </Search>
        {table && (
          <fieldset class="states">
            <legend class="only-read">{t("sessions.state")}</legend>
            {[["", "sessions.all"] as const, ...states].map(([value, word]) => (
              <button key={value} type="button" class="quiet" aria-pressed={at.state === value} onClick={() => filter(at.q, value)}>
                {t(word)}
                {countOf(counts, value) && <small>{countOf(counts, value)}</small>}
              </button>
            ))}
          </fieldset>
        )}
      </header>
      {list.error.value && !rows ? (
        <Failure error={list.error.value} again={() => void list.read()} />
      ) : !rows ? (
        <Skeleton rows={8} />
      ) : rows.length === 0 ? (
        <Nothing
          filtered={at.q !== "" || at.state !== ""}
          searched={list.more.value ? list.searched.value : undefined}
          older={() => void list.next()}
          clear={() => filter("", "")}
        />
      ) : (
        <div class="grow">
          {table && (
            <Header
              order={order}
              sort={sort}
              all={rows.every((s) => several.has(s.session_id))}
              pick={(all) => pick(new Set(all ? rows.map((s) => s.session_id) : []))}
            />
          )}
          <Rows
            rows={rows}
            height={table ? (density.value === "dense" ? 32 : 44) : 60}
            label={t("sessions.title")}
            picked={picked}
            pick={setOver}
            open={(i) => {
              setOver(-1);
              open(rows[i]);
            }}
            mark={(i) => rows[i] && (table ? turn(rows[i].session_id) : choose(rows[i].session_id))}
            row={(s) => (table ? <Line s={s} picked={several.has(s.session_id)} pick={() => turn(s.session_id)} /> : <Row s={s} />)}
          />
        </div>
      )}
      {table && several.size > 0 && <Several ids={[...several]} done={() => pick(new Set())} />}
      {list.more.value && rows?.length !== 0 && (
        <button type="button" class="more" onClick={() => void list.next()}>
          {t("sessions.more")}
        </button>
      )}
    </section>
  );
}

/** A list without a row: nothing fits, nothing has been found so far, or there is nothing. */
function Nothing(p: { filtered: boolean; searched: number | undefined; older: () => void; clear: () => void }): JSX.Element {
  if (p.filtered && p.searched !== undefined)
    return <Face title={t("face.newest", { n: p.searched })} action={{ text: t("face.older"), go: p.older }} />;
  if (p.filtered) return <Face title={t("face.nothing")} action={{ text: t("face.clear"), go: p.clear }} />;
  return (
    <Face
      title={t("sessions.empty")}
      text={t("sessions.empty.text")}
      action={{ text: t("nowhere.action"), go: () => go(room("playground")) }}
    />
  );
}

function Row({ s }: { s: SessionSummary }): JSX.Element {
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
        <StateChip state={stateOf(s)} small />
        {runs === 1 ? t("sessions.run") : t("sessions.runs", { n: runs })} ·{" "}
        {s.last_seq === 1 ? t("sessions.event") : t("sessions.events", { n: s.last_seq })}
      </span>
    </>
  );
}
