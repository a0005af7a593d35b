import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { decideAll, snooze } from "../../model/inbox.ts";
import { Dialog, Text } from "../../parts/basics.tsx";
import { Code } from "../../parts/code.tsx";
import { Icon } from "../../parts/icons.tsx";
import { t } from "../../words.ts";
import { Put } from "./snooze.tsx";

/** Answers several questions of one kind at once. Each is answered for exactly what its card has shown. */
export function Together({ all, done }: { all: readonly ListedQuestion[]; done: () => void }): JSX.Element {
  const [why, setWhy] = useState("");
  const [asks, ask] = useState(false);
  const n = all.length;
  const scope = all[0]?.scope;
  const free = scope === "agent";
  const send = (decision: string) => {
    void decideAll(all, { decision, ...(free ? { message: why } : why ? { feedback: why } : {}) });
    done();
  };
  const count = t(n === 1 ? "together.one" : "together.several", { n });
  const label = t(free ? "question.answer" : "question.why");
  return (
    <section class="together" aria-label={count}>
      <b>{count}</b>
      <input type="text" aria-label={label} placeholder={label} value={why} onInput={(e) => setWhy(e.currentTarget.value)} />
      {free ? (
        <button type="button" class="primary" disabled={why === ""} onClick={() => send("answer")}>
          {t("together.answer", { n })}
        </button>
      ) : (
        <>
          <button type="button" class="primary" onClick={() => (scope === "tool" ? ask(true) : send("approve"))}>
            <Icon name="tick" />
            {t("together.approve", { n })}
          </button>
          <button type="button" onClick={() => send("reject")}>
            <Icon name="cross" />
            {t("together.reject", { n })}
          </button>
        </>
      )}
      <Put
        name={count}
        text
        put={(how) => {
          snooze(all, how);
          done();
        }}
      />
      <button type="button" class="quiet" onClick={done}>
        {t("together.none")}
      </button>
      {asks && (
        <Sure
          all={all}
          close={() => ask(false)}
          run={() => {
            ask(false);
            send("approve");
          }}
        />
      )}
    </section>
  );
}

/** Shows the calls that are about to be approved: what a tool has done cannot be undone. */
function Sure({ all, run, close }: { all: readonly ListedQuestion[]; run: () => void; close: () => void }): JSX.Element {
  const n = all.length;
  const title = t(n === 1 ? "together.sure.one" : "together.sure", { n });
  return (
    <Dialog label={title} close={close} class="sure">
      <h2>{title}</h2>
      <p>{t("together.sure.text")}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <ul tabIndex={0}>
        {all.map((q) => (
          <li key={q.id}>
            <p>
              <code class="tool">
                <Text>{q.tool ?? ""}</Text>
              </code>{" "}
              {q.title && <Text most={120}>{t("question.asks", { title: q.title })}</Text>}
            </p>
            <Code value={q.arguments} />
          </li>
        ))}
      </ul>
      <div class="actions">
        <button type="button" onClick={close}>
          {t("confirm.cancel")}
        </button>
        <button type="button" class="primary" onClick={run}>
          {t("together.approve", { n })}
        </button>
      </div>
    </Dialog>
  );
}
