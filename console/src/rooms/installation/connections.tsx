import type { Connection, ConnectionList, Watch } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { now, span } from "../../app.ts";
import { behind, watches } from "../../fold/watching.ts";
import { lively, Reading } from "../../model/installation.ts";
import { amount } from "../../parts/amounts.ts";
import { Face, shortened, Text, Time } from "../../parts/basics.tsx";
import { LevelChip } from "../../parts/level.tsx";
import { Link } from "../../parts/link.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Search } from "../../parts/search.tsx";
import { Table } from "../../parts/table.tsx";
import { go, type Route, room } from "../../route.ts";
import { t, type Word } from "../../words.ts";
import { part } from "./part.tsx";

/** So many connections are read: the server lists those that lag first. */
const most = 500;
/** So many viewers of a connection are shown. */
const mostWatches = 3;

/** The connections of the tenant's clients with all gateways, those that lag first. */
export function Connections({ text, lagging }: { text: string; lagging: boolean }): JSX.Element {
  const list = useMemo(
    () => new Reading<ConnectionList>(`/api/v1/connections?limit=${most}${lagging ? "&lagging=true" : ""}`, lively),
    [lagging],
  );
  useEffect(() => () => list.close(), [list]);
  const show = (entity: string, only: boolean) =>
    go({ ...room("installation"), tab: "connections", entity, ...(only ? { lagging: true } : {}) } as Route, "replace");
  const all = list.value.value;
  const rows = (all?.connections ?? []).filter((c) => watches(c, text));
  return (
    <>
      <div class="filters">
        <Search label={t("connections.filter")} value={text} change={(v) => show(v, lagging)}>
          <label class="check">
            <input type="checkbox" checked={lagging} onChange={(e) => show(text, e.currentTarget.checked)} />
            {t("connections.only")}
          </label>
        </Search>
      </div>
      <Shown of={list} value={all} rows={6}>
        {all && (all.missing ?? []).length > 0 && (
          <p class="loud">
            <Text most={600}>{t("connections.missing", { all: all.missing.join(", ") })}</Text>
          </p>
        )}
        {rows.length > 0 ? (
          <Table
            title={t("installation.connections")}
            quiet
            look="connections"
            columns={[
              "connections.principal",
              "connections.protocol",
              "connections.watches",
              "connections.behind",
              "connections.waiting",
              "connections.since",
              "connections.gateway",
            ]}
          >
            {rows.map((c) => (
              <Row key={`${c.gateway} ${c.id}`} c={c} />
            ))}
          </Table>
        ) : text || lagging ? (
          <Face
            title={t(lagging && !text ? "connections.none.lag" : "face.nothing")}
            action={{ text: t("face.clear"), go: () => show("", false) }}
          />
        ) : (
          <Face title={t("connections.empty")} text={t("connections.empty.text")} />
        )}
        {all && all.total > all.connections.length && (
          <p class="about">{t("connections.cut", { n: all.connections.length, of: all.total })}</p>
        )}
      </Shown>
    </>
  );
}

const reasons: Record<string, Word> = {
  queue_full: "connections.lag.queue",
  loading: "connections.lag.loading",
  expired: "connections.lag.expired",
};

function Row({ c }: { c: Connection }): JSX.Element {
  const b = behind(c);
  const shown = c.watches.slice(0, mostWatches);
  const further = c.watches.length - shown.length + (c.more_watches ?? 0);
  const since = b.lag?.lagging_since;
  return (
    <tr>
      <th scope="row">
        <Text>{c.principal || c.remote || t("connections.anonymous")}</Text>
        {b.lag && (
          <small class="lag">
            <LevelChip level="warn" word="connections.lags" />
            <span>
              {t(reasons[b.lag.reason ?? ""] ?? "connections.lags")}
              {since && ` · ${span(Math.max(0, now.value - Date.parse(since)))}`}
            </span>
          </small>
        )}
      </th>
      <td data-label={t("connections.protocol")}>{c.protocol}</td>
      <td data-label={t("connections.watches")} class="watches">
        {shown.map((w, i) => (
          <Watched key={i} w={w} />
        ))}
        {further > 0 && <span class="about">{t("connections.more", { n: further })}</span>}
        {c.watches.length === 0 && <span class="about">{t("connections.nothing")}</span>}
      </td>
      <td data-label={t("connections.behind")} class="number">
        {amount(b.events)}
        {b.missed > 0 && <small>{t("connections.missed", { n: amount(b.missed) })}</small>}
      </td>
      <td data-label={t("connections.waiting")} class="number">
        {t("bytes", { n: amount(b.bytes) })}
      </td>
      <td data-label={t("connections.since")}>
        <Time at={c.since} />
      </td>
      <td data-label={t("connections.gateway")}>
        <Link to={part({ instance: c.gateway })}>
          <code>{shortened(c.gateway)}</code>
        </Link>
      </td>
    </tr>
  );
}

/** What a viewer shows, with a way there if the console has one. */
function Watched({ w }: { w: Watch }): JSX.Element {
  if (!w.log) return <span>{t("connections.announcements")}</span>;
  const cut = w.log.indexOf("/");
  const [kind, id] = [w.log.slice(0, cut), w.log.slice(cut + 1)];
  const to = placeOf(kind, id);
  const text = (
    <>
      {kind} <code>{shortened(id)}</code>
    </>
  );
  return <span title={w.log}>{to ? <Link to={to}>{text}</Link> : text}</span>;
}

function placeOf(kind: string, id: string): Route | undefined {
  if (kind === "session") return { room: "sessions", id, view: "talk", q: "", state: "" };
  if (kind === "team") return { room: "teams", id, view: "tree" };
  return kind === "task" ? { room: "task", id, view: "work" } : undefined;
}
