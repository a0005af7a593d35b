import type { SessionSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { mayAct, reason, say, span } from "../app.ts";
import { deleteSession, stopRun } from "../model/act.ts";
import { type Column, chosenColumns, columns, type Order, stateOf, views, whoOf } from "../model/columns.ts";
import { choose, chosen, compareChosen } from "../model/compare.ts";
import { saveLog } from "../model/log.ts";
import { t } from "../words.ts";
import { dollars, tokens, tokensOf } from "./amounts.ts";
import { StateChip, Text, Time } from "./basics.tsx";
import { ConfirmDialog } from "./confirm.tsx";
import { Icon } from "./icons.tsx";

const width: Record<Column, string> = {
  who: "minmax(96px, 160px)",
  by: "minmax(96px, 140px)",
  duration: "88px",
  tokens: "84px",
  cost: "84px",
  runs: "64px",
  started: "148px",
  changed: "148px",
};

const grid = () => ({
  gridTemplateColumns: ["32px", "148px", "minmax(200px, 1fr)", ...chosenColumns.value.map((c) => width[c])].join(" "),
});

const numbers: readonly Column[] = ["duration", "tokens", "cost", "runs"];
const look = (c: Column) => (numbers.includes(c) ? "number" : undefined);

/** The heads of the columns: a click orders the rows by one, a second one the other way round. */
export function Header({
  order,
  sort,
  all,
  pick,
}: {
  order: Order;
  sort: (o: Order) => void;
  /** Whether all rows are selected. */
  all: boolean;
  pick: (all: boolean) => void;
}): JSX.Element {
  const head = (by: Order["by"]) => (
    <button
      key={by}
      type="button"
      class={`quiet ${(by !== "title" && by !== "state" && look(by)) || ""}`}
      aria-pressed={order.by === by}
      title={t("columns.sort")}
      onClick={() => sort({ by, down: order.by === by ? !order.down : by !== "title" && by !== "who" && by !== "by" && by !== "state" })}
    >
      {t(`columns.${by}`)}
      {order.by === by && <Icon name={order.down ? "down" : "up"} />}
    </button>
  );
  return (
    <div class="columns" style={grid()} role="presentation">
      <input
        type="checkbox"
        checked={all}
        aria-label={t("several.all")}
        title={t("several.all")}
        onChange={(e) => pick(e.currentTarget.checked)}
      />
      {head("state")}
      {head("title")}
      {chosenColumns.value.map(head)}
    </div>
  );
}

/** A session as a row of the table. */
export function Line({ s, picked, pick }: { s: SessionSummary; picked: boolean; pick: () => void }): JSX.Element {
  const cell: Record<Column, () => JSX.Element | string> = {
    who: () => <Text most={32}>{whoOf(s)}</Text>,
    by: () => <Text most={32}>{s.principal ?? ""}</Text>,
    duration: () => (s.duration_ms ? span(s.duration_ms) : ""),
    tokens: () => (s.tokens ? <span title={tokensOf(s) || undefined}>{tokens(s.tokens)}</span> : ""),
    cost: () => (s.cost_usd === undefined ? "" : dollars(s.cost_usd)),
    runs: () => String(s.runs ?? 0),
    started: () => (s.created_at ? <Time at={s.created_at} /> : ""),
    changed: () => <Time at={s.updated_at} />,
  };
  return (
    <div class={picked ? "line picked" : "line"} style={grid()} role="presentation">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list has the key x */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: options hold nothing that takes the focus */}
      <span
        class={picked ? "pick on" : "pick"}
        title={t("several.pick")}
        onClick={(e) => {
          e.stopPropagation();
          pick();
        }}
      >
        {picked && (
          <>
            <Icon name="tick" />
            <span class="only-read">{t("several.picked")}</span>
          </>
        )}
      </span>
      <StateChip state={stateOf(s)} small />
      <span class="title">
        <Text most={200}>{s.question || t("sessions.untitled")}</Text>
      </span>
      {chosenColumns.value.map((c) => (
        <span key={c} class={look(c)}>
          {cell[c]()}
        </span>
      ))}
    </div>
  );
}

/** Which columns the table has. */
export function Columns(): JSX.Element {
  return (
    <>
      <button type="button" class="quiet" popovertarget="columns">
        <Icon name="gear" />
        {t("columns.choose")}
      </button>
      <div id="columns" popover="auto" class="menu columns-menu">
        {columns.map((c) => (
          <label key={c} class="check">
            <input
              type="checkbox"
              checked={chosenColumns.value.includes(c)}
              onChange={(e) => {
                const on = e.currentTarget.checked;
                chosenColumns.value = columns.filter((x) => (x === c ? on : chosenColumns.value.includes(x)));
              }}
            />
            {t(`columns.${c}`)}
          </label>
        ))}
      </div>
    </>
  );
}

/** The filters that the reader has saved, and a way to save the present one. */
export function Views(p: { q: string; state: string; show: (q: string, state: string) => void }): JSX.Element {
  const filtered = p.q !== "" || p.state !== "";
  const now = views.value.find((v) => v.q === p.q && v.state === p.state);
  const save = () => {
    const state = p.state === "unknown_outcome" ? "unknown" : p.state;
    const words = [state && t(`state.${state}` as "state.failed"), p.q].filter(Boolean).join(", ");
    views.value = now ? views.value.filter((v) => v !== now) : [...views.value, { name: words, q: p.q, state: p.state }];
  };
  return (
    <>
      {views.value.length > 0 && (
        <select
          aria-label={t("views.title")}
          value={now?.name ?? ""}
          onChange={(e) => {
            const v = views.value.find((x) => x.name === e.currentTarget.value);
            p.show(v?.q ?? "", v?.state ?? "");
          }}
        >
          <option value="">{t("views.title")}</option>
          {views.value.map((v) => (
            <option key={v.name} value={v.name}>
              {v.name}
            </option>
          ))}
        </select>
      )}
      {filtered && (
        <button type="button" class="quiet" onClick={save}>
          <Icon name={now ? "cross" : "plus"} />
          {t(now ? "views.drop" : "views.save")}
        </button>
      )}
    </>
  );
}

/** What can be done with several sessions at once. */
export function Several({ ids, done }: { ids: readonly string[]; done: () => void }): JSX.Element {
  const [asks, ask] = useState(false);
  const each = async (f: (id: string) => Promise<unknown>) => {
    const all = await Promise.allSettled(ids.map(f));
    const no = all.filter((r): r is PromiseRejectedResult => r.status === "rejected");
    if (no[0]) say(t("several.refused", { n: no.length, why: reason(no[0].reason) }));
    done();
  };
  const save = async () => {
    for (const id of ids) await saveLog("session", id).catch((error) => say(reason(error)));
    done();
  };
  const compare = () => {
    chosen.value = [];
    for (const id of ids) choose(id);
    compareChosen(undefined);
  };
  const count = ids.length === 1 ? t("several.one") : t("several.many", { n: ids.length });
  return (
    <div class="several" role="toolbar" aria-label={count}>
      <b>{count}</b>
      {mayAct.value && (
        <button type="button" onClick={() => void each(stopRun)}>
          <Icon name="stop" />
          {t("several.stop")}
        </button>
      )}
      <button type="button" disabled={ids.length !== 2} title={t("several.two")} onClick={compare}>
        <Icon name="compare" />
        {t("compare.button")}
      </button>
      <button type="button" onClick={() => void save()}>
        <Icon name="download" />
        {t("several.export")}
      </button>
      {mayAct.value && (
        <button type="button" class="danger" onClick={() => ask(true)}>
          <Icon name="bin" />
          {t("several.delete")}
        </button>
      )}
      <span class="grow" />
      <button type="button" class="quiet" onClick={done}>
        {t("several.none")}
      </button>
      {asks && (
        <ConfirmDialog
          title={t("several.delete.title", { what: count })}
          text={t("session.delete.text")}
          name={count}
          action={t("several.delete")}
          run={() => {
            ask(false);
            void each(deleteSession);
          }}
          close={() => ask(false)}
        />
      )}
    </div>
  );
}
