import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { type Snooze, snoozes } from "../../fold/inbox.ts";
import { snoozed, wake } from "../../model/inbox.ts";
import { Text, Time } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icons.tsx";
import { asksFor } from "../../parts/question.tsx";
import { t } from "../../words.ts";

/** A button that puts a question off. */
export function Put({ name, put, text }: { name: string; put: (how: Snooze) => void; text?: boolean }): JSX.Element {
  const id = useId();
  const label = t("snooze.put", { what: name });
  return (
    <>
      <button
        type="button"
        class={text ? "put" : "quiet snooze"}
        popovertarget={id}
        aria-label={label}
        title={text ? undefined : t("snooze.title")}
      >
        <Icon name="clock" />
        {text && t("snooze.title")}
      </button>
      <div id={id} popover="auto" class="menu near">
        {snoozes.map((how) => (
          <button
            key={how}
            type="button"
            class="quiet"
            onClick={(e) => {
              e.currentTarget.closest<HTMLElement>("[popover]")?.hidePopover();
              put(how);
            }}
          >
            {t(`snooze.${how}`)}
          </button>
        ))}
      </div>
    </>
  );
}

/** The questions that this browser has put off, with a way back. */
export function Sleeping({ all }: { all: readonly ListedQuestion[] }): JSX.Element {
  const back = (q: ListedQuestion) => snoozed.value[q.id] ?? 0;
  return (
    <details class="sleeping">
      <summary>{t("snooze.list", { n: all.length })}</summary>
      <p>{t("snooze.about")}</p>
      <ul>
        {all
          .toSorted((a, b) => back(a) - back(b))
          .map((q) => (
            <li key={q.id}>
              <span class="what">
                <b>
                  <Text most={120}>{asksFor(q)}</Text>
                </b>
                {q.title && (
                  <small>
                    <Text most={120}>{t("question.asks", { title: q.title })}</Text>
                  </small>
                )}
              </span>
              <span class="until">
                {t("snooze.until")} <Time at={back(q)} />
              </span>
              <button type="button" aria-label={t("snooze.back.label", { what: asksFor(q) })} onClick={() => wake(q.id)}>
                {t("snooze.back")}
              </button>
            </li>
          ))}
      </ul>
    </details>
  );
}
