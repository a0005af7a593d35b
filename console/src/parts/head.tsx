import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { copy, reason, say } from "../app.ts";
import type { LogModel } from "../model/log.ts";
import { t } from "../words.ts";
import { Id, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { Menu } from "./menu.tsx";
import { Scrubber } from "./scrubber.tsx";

/** The head of a room that shows a log: its name, its views, and the moment that they show. */
export function Head<V extends string>(p: {
  model: LogModel;
  name: string;
  label: string;
  state: JSX.Element;
  back: { label: string; go: () => void };
  views: readonly { id: V; text: string }[];
  view: V;
  turn: (to: V) => void;
  seek: (at: number | undefined, how: "passes" | "stays") => void;
  /** What is known of it besides its state. */
  facts?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  const { model } = p;
  const at = model.last;
  const asked = model.at.value;
  const { first, head } = model.extent.value;
  useEffect(() => {
    if (asked === undefined || head === 0) return;
    if (asked > head) p.seek(undefined, "stays");
    else if (asked < first) p.seek(first, "stays");
  }, [asked, first, head]);
  return (
    <header class="head">
      <div class="line">
        <button type="button" class="quiet back" aria-label={p.back.label} onClick={p.back.go}>
          <Icon name="back" />
        </button>
        <h1>
          <Text>{p.name}</Text>
        </h1>
        {p.state}
        <span class="grow" />
        <Menu>
          {p.children}
          <button type="button" class="quiet" title={t("session.link")} onClick={() => void copy(location.href)}>
            <Icon name="link" />
            <span class="wide">{t("session.link")}</span>
          </button>
          <button
            type="button"
            class="quiet"
            title={t("session.export")}
            onClick={() => void model.save().catch((error) => say(reason(error)))}
          >
            <Icon name="download" />
            <span class="wide">{t("session.export")}</span>
          </button>
        </Menu>
      </div>
      <div class="line">
        <div class="tabs" role="tablist" aria-label={p.label}>
          {p.views.map((v) => (
            <button
              key={v.id}
              type="button"
              role="tab"
              id={`tab-${v.id}`}
              aria-selected={p.view === v.id}
              aria-controls="view"
              onClick={() => p.turn(v.id)}
            >
              {v.text}
            </button>
          ))}
        </div>
        {p.facts}
        <span class="grow" />
        <Id value={model.id} />
      </div>
      <Scrubber model={model} seek={p.seek} />
      {model.inPast && (
        <p class="frame" role="status">
          <Icon name="clock" />
          {t("session.past", { at, head: model.head, newer: model.head - at })}
          <button type="button" onClick={() => p.seek(undefined, "stays")}>
            {t("session.live")}
          </button>
        </p>
      )}
    </header>
  );
}
