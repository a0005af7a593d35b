import type { CanonicalEvent } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { copy, refusedLogin } from "../app.ts";
import { framesOf, type Protocol, protocols, spoken } from "../model/frames.ts";
import type { LogModel } from "../model/log.ts";
import { t } from "../words.ts";
import { Failure, Skeleton } from "./basics.tsx";
import { Code } from "./code.tsx";
import { Icon } from "./icons.tsx";
import { Link } from "./link.tsx";

/** One event of a log: its JSON, or the frames that clients of a protocol get for it. */
export function EventDetail({ model, seq, close }: { model: LogModel; seq: number; close: () => void }): JSX.Element {
  const event = useEvent(model, seq);
  const as = spoken.value;
  const frames = useFrames(model, seq, as);
  const shown = as ? frames.list : event && [event];
  return (
    <aside class="detail" aria-label={t("log.detail", { seq })}>
      <header>
        <h2>{t("log.detail", { seq })}</h2>
        <button
          type="button"
          class="quiet"
          disabled={!shown?.length}
          onClick={() => void copy((shown ?? []).map((one) => JSON.stringify(one, null, 2)).join("\n"))}
        >
          {t("log.copy")}
        </button>
        <button type="button" class="quiet" aria-label={t("keys.close")} onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      <TaskLink of={event} />
      <div class="as">
        <label>
          {t("log.as")}
          <select
            value={as ?? ""}
            onChange={(e) => {
              spoken.value = (e.currentTarget.value || undefined) as Protocol | undefined;
            }}
          >
            <option value="">{t("log.stored")}</option>
            {Object.entries(protocols).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <p class="count" role="status">
          {as && frames.list && said(protocols[as], frames.list.length)}
        </p>
      </div>
      {frames.error !== undefined && <Failure error={frames.error} again={frames.again} />}
      {as && !frames.list && frames.error === undefined && <Skeleton />}
      <div class="frames">
        {shown?.map((one, i) => (
          <Code key={`${as} ${seq} ${i}`} value={one} />
        ))}
      </div>
    </aside>
  );
}

/** How many frames clients get. */
function said(protocol: string, n: number): string {
  return t(n === 0 ? "log.silent" : n === 1 ? "log.frame" : "log.frames", { protocol, n });
}

/** A link to the task of the swarm that an event is about, if it is about one. */
export function TaskLink({ of }: { of: CanonicalEvent | undefined }): JSX.Element | null {
  const { swarm_task, child_id } = (of?.data ?? {}) as { swarm_task?: string; child_id?: string };
  const id = swarm_task || child_id;
  if (!id) return null;
  return (
    <p>
      <Link to={{ room: "task", id, view: "work" }}>{t("log.task")}</Link>
    </p>
  );
}

/** An event, once it is there; without a sequence none. */
export function useEvent(model: LogModel, seq: number | undefined): CanonicalEvent | undefined {
  const [event, setEvent] = useState<CanonicalEvent | undefined>(undefined);
  useEffect(() => {
    setEvent(undefined);
    if (seq === undefined) return;
    let over = false;
    model.event(seq).then(
      (e) => !over && setEvent(e),
      () => {}, // the room shows why the log cannot be read
    );
    return () => {
      over = true;
    };
  }, [model, seq]);
  return event;
}

interface Frames {
  list?: readonly unknown[];
  error?: unknown;
}

/** The frames of an event, once they are there; without a protocol none. */
function useFrames(model: LogModel, seq: number, as: Protocol | undefined): Frames & { again: () => void } {
  const [frames, setFrames] = useState<Frames>({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    setFrames({});
    if (!as) return;
    const stop = new AbortController();
    framesOf(model.kind, model.id, seq, as, stop.signal).then(
      (list) => !stop.signal.aborted && setFrames({ list }),
      (error) => !stop.signal.aborted && !refusedLogin(error) && setFrames({ error }),
    );
    return () => stop.abort();
  }, [model, seq, as, tries]);
  return { ...frames, again: () => setTries(tries + 1) };
}
