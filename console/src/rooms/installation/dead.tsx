import type { DeadLetter, DeadLetterDetail } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { client, reason, say } from "../../app.ts";
import { discardLetter, resendLetter } from "../../model/act.ts";
import type { Pages } from "../../model/installation.ts";
import { Face, Failure, Id, Skeleton, Text, Time } from "../../parts/basics.tsx";
import { Code } from "../../parts/code.tsx";
import { ConfirmDialog } from "../../parts/confirm.tsx";
import { Shown } from "../../parts/reading.tsx";
import { t } from "../../words.ts";

/** After so long a command that was sent again is done, or a dead letter once more. */
const settled = 2000;

/** The commands that services have given up. */
export function Dead({ letters }: { letters: Pages<DeadLetter> }): JSX.Element {
  const rows = letters.rows.value;
  const done = (l: DeadLetter) => {
    letters.drop(l);
    void letters.read();
    setTimeout(() => void letters.read(), settled);
  };
  return (
    <Shown of={letters} value={rows} rows={5}>
      {rows?.length === 0 ? (
        <Face title={t("dead.empty")} text={t("dead.empty.text")} />
      ) : (
        <>
          <p class="about">{t("dead.about")}</p>
          <ul class="letters" aria-label={t("installation.dead")}>
            {rows?.map((l) => (
              <Letter key={l.seq} l={l} done={() => done(l)} />
            ))}
          </ul>
        </>
      )}
      {letters.next.value !== undefined && (
        <button type="button" class="more" onClick={() => void letters.more()}>
          {t("dead.more")}
        </button>
      )}
    </Shown>
  );
}

function Letter({ l, done }: { l: DeadLetter; done: () => void }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [asks, ask] = useState(false);
  const act = async (what: (seq: number) => Promise<void>, text: string) => {
    setBusy(true);
    try {
      await what(l.seq);
      say(text);
      done();
    } catch (error) {
      say(reason(error));
      setBusy(false);
    }
  };
  return (
    <li>
      <header>
        <h2>
          <Text>{`${l.service} ${l.verb}`}</Text>
        </h2>
        <Time at={l.time} />
      </header>
      <p class="reason">
        <Text most={400}>{l.reason}</Text>
      </p>
      <p class="about">
        {l.deliveries === 1 ? t("dead.delivery") : t("dead.deliveries", { n: l.deliveries })} ·{" "}
        <Text>{l.principal ? t("dead.of", { who: l.principal }) : t("dead.ofService")}</Text> · <Id value={l.key} />
      </p>
      <Detail seq={l.seq} />
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={busy || !l.command_id}
          title={l.command_id ? undefined : t("dead.noCommand")}
          onClick={() => void act(resendLetter, t("dead.sent"))}
        >
          {t("dead.resend")}
        </button>
        <button type="button" disabled={busy} onClick={() => ask(true)}>
          {t("dead.discard")}
        </button>
        {!l.command_id && <small>{t("dead.noCommand")}</small>}
      </div>
      {asks && (
        <ConfirmDialog
          title={t("dead.confirm")}
          text={t("dead.confirm.text")}
          name={l.verb}
          action={t("dead.discard")}
          close={() => ask(false)}
          run={() => {
            ask(false);
            void act(discardLetter, t("dead.discarded"));
          }}
        />
      )}
    </li>
  );
}

/** The command of a letter, read when somebody wants to see it. */
function Detail({ seq }: { seq: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  const [command, setCommand] = useState<unknown>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const read = () => {
    setError(undefined);
    client.call<DeadLetterDetail>("GET", `/api/v1/dead-letters/${seq}`).then((d) => setCommand(d.command), setError);
  };
  return (
    <details
      onToggle={(e) => {
        setOpen(e.currentTarget.open);
        if (e.currentTarget.open && command === undefined) read();
      }}
    >
      <summary>{t("dead.command")}</summary>
      {open && (error ? <Failure error={error} again={read} /> : command === undefined ? <Skeleton rows={2} /> : <Code value={command} />)}
    </details>
  );
}
