import type { ModelTrial } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { client, refusedLogin, span } from "../../app.ts";
import type { Progress } from "../../model/pieces.ts";
import { Trials } from "../../model/trials.ts";
import { Failure, Text } from "../../parts/basics.tsx";
import { type Level, LevelChip } from "../../parts/level.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";

const levels: Record<string, Level> = { works: "ok", doubts: "warn", missing: "fail" };

/** Has a worker make a trial. */
async function make(n: number, signal: AbortSignal): Promise<ModelTrial> {
  try {
    return await client.call<ModelTrial>("POST", `/api/v1/model/trials/${n}`, undefined, { signal });
  } catch (error) {
    refusedLogin(error);
    throw error;
  }
}

/** Finds out what the model can do, when somebody asks for it: it costs tokens. */
export function ModelTrials(): JSX.Element {
  const trials = useMemo(() => new Trials(make), []);
  useEffect(() => () => trials.stop(), [trials]);
  const running = trials.state.value === "running";
  const error = trials.error.value;
  const begin = useRef<HTMLButtonElement>(null);
  const stop = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const at = document.activeElement; // a button that is gone or disabled hands its focus on
    if (trials.state.value === "new" || (at !== begin.current && at !== document.body)) return;
    (running ? stop : begin).current?.focus({ preventScroll: true });
  }, [running, trials]);
  return (
    <section class="trials" aria-labelledby="trials">
      <h2 id="trials">{t("trials.title")}</h2>
      <p class="about" id="trials-cost">
        {t("trials.about")}
      </p>
      <div class="actions">
        <button type="button" ref={begin} disabled={running} aria-describedby="trials-cost" onClick={() => void trials.start()}>
          {t("trials.try")}
        </button>
        {running && (
          <button type="button" ref={stop} onClick={() => trials.stop()}>
            {t("trials.stop")}
          </button>
        )}
      </div>
      <div class="results" aria-live="polite">
        <Results trials={trials} />
      </div>
      {error !== undefined && <Failure error={error} again={() => void trials.resume()} />}
    </section>
  );
}

/** What was found so far, and which trial is made. */
function Results({ trials }: { trials: Trials }): JSX.Element {
  const all = trials.results.value;
  const text = progress(trials.state.value, all);
  return (
    <>
      {all.length > 0 && (
        <Table quiet look="health checks" title={t("trials.results")} columns={["trials.what", "health.state", "checks.is"]}>
          {all.map((r) => (
            <tr key={r.trial}>
              <th scope="row">
                <Text>{r.name}</Text>
              </th>
              <td>
                <LevelChip level={levels[r.grade] ?? "warn"} {...(r.grade === "missing" ? { word: "trials.missing" } : {})} />
              </td>
              <td class="value">
                <Text most={300}>{r.is}</Text>
                {r.do && (
                  <small>
                    <Text most={600}>{r.do}</Text>
                  </small>
                )}
                <small>
                  <Text>{r.model}</Text> · {span(r.duration_ms)} · {tokens(r)}
                </small>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {text && <p class="about">{text}</p>}
    </>
  );
}

const tokens = (r: ModelTrial) =>
  r.input_tokens === undefined ? t("trials.unknown") : t("trials.tokens", { in: r.input_tokens, out: r.output_tokens ?? 0 });

/** How far the trials are, in words. */
function progress(state: Progress, all: readonly ModelTrial[]): string {
  const last = all.at(-1);
  switch (state) {
    case "running":
      return last ? t("trials.runs", { n: all.length + 1, of: last.of }) : t("trials.first");
    case "stopped":
      return t("trials.stopped");
    case "done":
      if (last?.stopped) return t("trials.silent");
      return t("trials.done", { n: all.filter((r) => r.grade === "works").length, of: all.length });
    default:
      return "";
  }
}
