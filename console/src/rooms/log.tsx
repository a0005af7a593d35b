import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { family } from "../fold/lines.ts";
import type { LogModel } from "../model/log.ts";
import type { LogRows } from "../model/rows.ts";
import { Face, Text, Time } from "../parts/basics.tsx";
import { EventDetail } from "../parts/detail.tsx";
import { type Listed, Rows } from "../parts/rows.tsx";
import { Search } from "../parts/search.tsx";
import { t } from "../words.ts";

/** The log of a session as it is: every event with its sequence, its time and its JSON. */
export function Log({ model, picked, pick }: { model: LogModel; picked: number; pick: (seq: number) => void }): JSX.Element {
  const [filter, setFilter] = useState("");
  const { first, head, reading } = model.extent.value;
  const last = model.last;
  const found = model.rows.found.value;
  const rows = useMemo(() => (found ? within(found, last) : range(first, last)), [found, first, last]);
  useEffect(() => model.rows.filter(filter), [model, filter]);
  useEffect(() => () => model.rows.filter(""), [model]);
  return (
    <div class={picked > 0 ? "log with-detail" : "log"}>
      <div class="list">
        <Search label={t("log.filter")} value={filter} change={setFilter}>
          <span class="count">{t("log.count", { shown: rows.length, all: Math.max(0, head - first + 1) })}</span>
        </Search>
        {first > 1 && <p class="expired">{t("log.expired", { first })}</p>}
        {found && rows.length === 0 && !reading && (
          <Face title={t("log.nothing")} action={{ text: t("face.clear"), go: () => setFilter("") }} />
        )}
        <Rows
          rows={rows}
          height={28}
          label={t("session.log")}
          picked={rows.indexOf(picked)}
          pick={(i) => pick(rows.slice(i, i + 1)[0] ?? 0)}
          follow={!model.inPast && picked === 0}
          seen={(seqs) => model.rows.want(seqs)}
          row={(seq) => <Row rows={model.rows} seq={seq} />}
        />
      </div>
      {picked > 0 && <EventDetail model={model} seq={picked} close={() => pick(0)} />}
    </div>
  );
}

/** The events from one to another, without any of them. */
function range(first: number, last: number): Seqs {
  const length = Math.max(0, last - first + 1);
  return {
    length,
    slice: (from, to) => Array.from({ length: Math.max(0, Math.min(to, length) - from) }, (_, i) => first + from + i),
    indexOf: (seq) => (seq >= first && seq <= last ? seq - first : -1),
  };
}

/** Of events that fit a filter those up to one of them. */
function within(found: Uint32Array, last: number): Seqs {
  let length = found.length;
  while (length > 0 && (found[length - 1] as number) > last) length--;
  return { length, slice: (from, to) => [...found.subarray(from, Math.min(to, length))], indexOf: (seq) => found.indexOf(seq) };
}

type Seqs = Listed<number> & { indexOf: (seq: number) => number };

function Row({ rows, seq }: { rows: LogRows; seq: number }): JSX.Element {
  rows.rev.value;
  const e = rows.row(seq);
  return (
    <>
      <span class="seq">{seq}</span>
      {e && (
        <>
          <span class="time">
            <Time at={e.time} precise />
          </span>
          <span class={`type family-${family(e.type)}`}>{e.type}</span>
          <span class="line">
            <Text most={160}>{e.line}</Text>
          </span>
        </>
      )}
    </>
  );
}
