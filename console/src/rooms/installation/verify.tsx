import type { AuditCheck } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { client, copy, refusedLogin } from "../../app.ts";
import { Verification } from "../../model/verify.ts";
import { amount } from "../../parts/amounts.ts";
import { Failure, Text, Time } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icons.tsx";
import { t } from "../../words.ts";

/** The command that does the same, with the keys of NATS. */
const command = "waggle audit verify";

async function ask(next: string | undefined, signal: AbortSignal): Promise<AuditCheck> {
  try {
    return await client.call<AuditCheck>("POST", "/api/v1/audit/verify", next === undefined ? {} : { next }, { signal });
  } catch (error) {
    refusedLogin(error);
    throw error;
  }
}

/** A button that has the audit log checked, and what was found. */
export function Verify(): JSX.Element {
  const check = useMemo(() => new Verification(ask), []);
  useEffect(() => () => check.stop(), [check]);
  const state = check.state.value;
  const found = check.found.value;
  const running = state === "running";
  return (
    <section class="verify" aria-label={t("verify.title")}>
      <p class="about">
        {running ? (
          <button type="button" onClick={() => check.stop()}>
            <Icon name="stop" />
            {t("verify.stop")}
          </button>
        ) : (
          <button type="button" onClick={() => void check.start()}>
            <Icon name="tick" />
            {t("verify.button")}
          </button>
        )}
        <span>
          {t("verify.about")}{" "}
          <button type="button" class="id" title={t("sample.copy")} onClick={() => void copy(command)}>
            <code>{command}</code>
          </button>
        </span>
      </p>
      <div role="status">
        {running && <p class="about">{t("verify.running", { n: amount(found?.records ?? 0), of: amount(found?.of ?? 0) })}</p>}
        {state === "stopped" && <p class="about">{t("verify.stopped", { n: amount(found?.records ?? 0) })}</p>}
        {state === "done" && found && <Found of={found} />}
      </div>
      {state === "failed" && <Failure error={check.error.value} again={() => void check.resume()} />}
    </section>
  );
}

/** What a check has found, in plain words. */
function Found({ of: c }: { of: AuditCheck }): JSX.Element {
  const faults = c.faults.length + (c.more_faults ?? 0);
  if (c.records === 0 && faults === 0) return <p class="about">{t("verify.empty")}</p>;
  return (
    <>
      <p class={faults > 0 ? "result fault" : "result whole"}>
        <Icon name={faults > 0 ? "cross" : "tick"} />
        <span>
          {t(faults === 0 ? "verify.whole" : faults === 1 ? "verify.broken.one" : "verify.broken", { n: amount(c.records), faults })}{" "}
          <span class="about">
            <Time at={c.oldest} /> – <Time at={c.newest} />
          </span>
        </span>
      </p>
      {faults > 0 && (
        <ul>
          {c.faults.map((f, i) => (
            <li key={`${f.seq} ${i}`}>
              <Text most={400}>{f.text}</Text>
            </li>
          ))}
          {c.more_faults !== undefined && <li>{t("verify.more", { n: amount(c.more_faults) })}</li>}
        </ul>
      )}
      {c.first > 1 && <p class="about">{t("verify.expired", { n: amount(c.first - 1) })}</p>}
      {c.lost > 0 && <p class="about">{t("verify.lost", { n: amount(c.lost) })}</p>}
      {c.unlinked > 0 && <p class="about">{t("verify.unlinked", { n: amount(c.unlinked) })}</p>}
    </>
  );
}
