import type { CanonicalEvent } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { copy } from "../app.ts";
import type { LogModel } from "../model/log.ts";
import { t } from "../words.ts";
import { Code } from "./code.tsx";
import { Icon } from "./icons.tsx";

/** An event of a log with all that is in it. */
export function EventDetail({ model, seq, close }: { model: LogModel; seq: number; close: () => void }): JSX.Element {
  const [event, setEvent] = useState<CanonicalEvent | undefined>(undefined);
  useEffect(() => {
    setEvent(undefined);
    let over = false;
    model.event(seq).then(
      (e) => !over && setEvent(e),
      () => {}, // the room shows why the log cannot be read
    );
    return () => {
      over = true;
    };
  }, [model, seq]);
  return (
    <aside class="detail" aria-label={t("log.detail", { seq })}>
      <header>
        <h3>{t("log.detail", { seq })}</h3>
        {event && (
          <button type="button" class="quiet" onClick={() => void copy(JSON.stringify(event, null, 2))}>
            {t("log.copy")}
          </button>
        )}
        <button type="button" class="quiet" aria-label={t("keys.close")} onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      {event && <Code value={event} />}
    </aside>
  );
}
