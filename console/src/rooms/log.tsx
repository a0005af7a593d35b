import type { CanonicalEvent } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { copy } from "../app.ts";
import { family, fits, line } from "../fold/lines.ts";
import type { LogModel } from "../model/log.ts";
import { Text, Time } from "../parts/basics.tsx";
import { Code } from "../parts/code.tsx";
import { Icon } from "../parts/icons.tsx";
import { Rows } from "../parts/rows.tsx";
import { Search } from "../parts/search.tsx";
import { t } from "../words.ts";

/** The log of a session as it is: every event with its sequence, its time and its JSON. */
export function Log({ model, picked, pick }: { model: LogModel<unknown>; picked: number; pick: (seq: number) => void }): JSX.Element {
  const [filter, setFilter] = useState("");
  const head = model.head.value;
  const at = model.at.value;
  const rows = useMemo(() => {
    const all = model.visible;
    return filter.trim() === "" ? [...all] : all.filter((e) => fits(e, filter));
  }, [head, at, filter, model]);
  const index = rows.findIndex((e) => e.sequence === picked);
  const event = rows[index];
  return (
    <div class={event ? "log with-detail" : "log"}>
      <div class="list">
        <Search label={t("log.filter")} value={filter} change={setFilter}>
          <span class="count">{t("log.count", { shown: rows.length, all: model.events.length })}</span>
        </Search>
        {model.first.value > 1 && <p class="expired">{t("log.expired", { first: model.first.value })}</p>}
        <Rows
          rows={rows}
          height={28}
          label={t("session.log")}
          picked={index}
          pick={(i) => pick(rows[i]?.sequence ?? 0)}
          follow={at === undefined && index < 0}
          row={(e) => <Row e={e} />}
        />
      </div>
      {event && (
        <aside class="detail" aria-label={t("log.detail", { seq: event.sequence })}>
          <header>
            <h3>{t("log.detail", { seq: event.sequence })}</h3>
            <button type="button" class="quiet" onClick={() => void copy(JSON.stringify(event, null, 2))}>
              {t("log.copy")}
            </button>
            <button type="button" class="quiet" aria-label={t("keys.close")} onClick={() => pick(0)}>
              <Icon name="cross" />
            </button>
          </header>
          <Code value={event} />
        </aside>
      )}
    </div>
  );
}

function Row({ e }: { e: CanonicalEvent }): JSX.Element {
  return (
    <>
      <span class="seq">{e.sequence}</span>
      <span class="time">
        <Time at={e.time} precise />
      </span>
      <span class={`type family-${family(e.type)}`}>{e.type}</span>
      <span class="line">
        <Text most={160}>{line(e)}</Text>
      </span>
    </>
  );
}
