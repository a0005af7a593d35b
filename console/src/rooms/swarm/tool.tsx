import type { ToolDetail } from "@waggle-dev/client";
import { WaggleError } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { mayAct, span } from "../../app.ts";
import { type Draft, draftOf, empty, filled, formOf, type Input, type Wrong } from "../../fold/form.ts";
import { line } from "../../fold/lines.ts";
import { Reading } from "../../model/installation.ts";
import { Call } from "../../model/swarm.ts";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../../parts/basics.tsx";
import { Code } from "../../parts/code.tsx";
import { Fields } from "../../parts/form.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Segments } from "../../parts/segments.tsx";
import { go, type ToolPlace } from "../../route.ts";
import { t } from "../../words.ts";
import { Marks } from "./tools.tsx";

const back = () => go({ room: "swarm", tab: "tools" });

/** One tool: what it does, who may call it, and a form to call it with. */
export function ToolPage({ at }: { at: ToolPlace }): JSX.Element {
  const of = useMemo(
    () => new Reading<ToolDetail>(`/api/v1/tools/${encodeURIComponent(at.provider)}/${encodeURIComponent(at.name)}?kind=${at.kind}`),
    [at.provider, at.name, at.kind],
  );
  useEffect(() => () => of.close(), [of]);
  const tool = of.value.value;
  const error = of.error.value;
  if (!tool && error instanceof WaggleError && error.status === 404)
    return <Face title={t("tool.none")} text={t("tool.none.text")} action={{ text: t("tool.back"), go: back }} />;
  if (!tool && error) return <Failure error={error} again={() => void of.read()} />;
  if (!tool) return <Skeleton />;
  return (
    <article class="tool-page">
      <header>
        <button type="button" class="quiet" onClick={back}>
          <Icon name="back" />
          {t("tool.back")}
        </button>
        <h2>
          <Text>{tool.provider_name}</Text> / <Text>{tool.title || tool.name}</Text>
        </h2>
        <Marks tool={tool} />
      </header>
      {tool.description && (
        <p class="description">
          <Text most={4000}>{tool.description}</Text>
        </p>
      )}
      <div class="sides">
        <Try key={JSON.stringify(tool.input_schema)} tool={tool} at={at} />
        <aside>
          <h3>{t("tool.who")}</h3>
          <ul class="who">
            <li>{t(tool.models ? (tool.asks ? "tool.who.models" : "tool.who.models.free") : "tool.who.models.no")}</li>
            <li>{t(tool.agents ? "tool.who.agents" : "tool.who.agents.no")}</li>
            <li>{t("tool.who.people")}</li>
          </ul>
          <details>
            <summary>{t("tool.schema")}</summary>
            <h4>{t("tool.input")}</h4>
            <Code value={tool.input_schema} />
            {tool.output_schema !== undefined && (
              <>
                <h4>{t("tool.output")}</h4>
                <Code value={tool.output_schema} />
              </>
            )}
          </details>
        </aside>
      </div>
    </article>
  );
}

type Mode = "form" | "json";

const writable = (form: Input) => form.kind !== "json";

/** The arguments of a call, as they are typed: in the form, or as JSON. */
function useArguments(form: Input) {
  const [mode, setMode] = useState<Mode>(writable(form) ? "form" : "json");
  const [draft, setDraft] = useState<Draft>(() => empty(form));
  const [text, setText] = useState("{}");
  const [wrong, setWrong] = useState<readonly Wrong[]>([]);
  const [refused, setRefused] = useState(false);
  const turn = (to: Mode) => {
    setRefused(false);
    setWrong([]);
    if (to === "json") {
      const { value } = filled(form, draft);
      setText(JSON.stringify(value ?? partly(form, draft), null, 2));
      setMode(to);
      return;
    }
    const next = parsed(text);
    const fits = next === undefined ? undefined : draftOf(form, next);
    if (fits === undefined) setRefused(true);
    else {
      setDraft(fits);
      setMode(to);
    }
  };
  /** The arguments, unless something is wrong with them. */
  const read = (): unknown => {
    if (mode === "form") {
      const { value, wrong } = filled(form, draft);
      setWrong(wrong);
      return wrong.length > 0 ? undefined : value;
    }
    const value = parsed(text);
    const ok = typeof value === "object" && value !== null && !Array.isArray(value);
    setWrong(ok ? [] : [{ at: "", why: value === undefined ? "json" : "object" }]);
    return ok ? value : undefined;
  };
  return { mode, turn, draft, setDraft, text, setText, wrong, setWrong, refused, read };
}

/** What is right so far, when something is missing or wrong. */
function partly(form: Input, draft: Draft): unknown {
  if (form.kind !== "object") return {};
  const all = draft as Record<string, Draft>;
  const right = form.fields.map((f) => [f.name, filled(f.input, all[f.name], f.required).value] as const);
  return Object.fromEntries(right.filter(([, v]) => v !== undefined));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Calls the tool, and shows what came of it. */
function Try({ tool, at }: { tool: ToolDetail; at: ToolPlace }): JSX.Element {
  const form = useMemo(() => formOf(tool.input_schema), [tool]);
  const args = useArguments(form);
  const call = useMemo(() => new Call(), []);
  useEffect(() => {
    if (at.call) void call.show(at.call);
    return () => call.close();
  }, [call]);
  const refused = call.refused.value;
  const placed = refused?.at !== undefined && args.mode === "form" ? { at: refused.at, text: refused.text } : undefined;
  const send = () => {
    const value = args.read();
    if (value === undefined) return;
    const named = (id: string) => go({ room: "swarm", tab: "tools", tool: { ...at, call: id } }, "replace");
    void call.start(tool.provider, tool.name, { kind: tool.kind, arguments: value as Record<string, unknown> }, named);
  };
  const busy = call.busy.value;
  return (
    <section class="try" aria-label={t("tool.try")}>
      <header>
        <h3>{t("tool.try")}</h3>
        {writable(form) && mayAct.value && (
          <Segments
            name="as"
            label={t("tool.as")}
            all={["form", "json"] as const}
            chosen={args.mode}
            choose={args.turn}
            text={(m) => t(`tool.${m}`)}
          />
        )}
      </header>
      {mayAct.value ? (
        <form
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            send();
          }}
        >
          {args.mode === "form" ? (
            <Fields
              input={form}
              draft={args.draft}
              change={(d) => {
                args.setDraft(d ?? {});
                if (args.wrong.length > 0) args.setWrong(filled(form, d ?? {}).wrong);
                call.refused.value = undefined;
              }}
              faults={{ wrong: args.wrong, said: placed }}
            />
          ) : (
            <Raw form={form} args={args} />
          )}
          {args.refused && (
            <p class="fault" role="alert">
              {t("tool.noform")}
            </p>
          )}
          {args.mode === "form" && args.wrong.length > 0 && (
            <p class="fault" role="alert">
              {t("tool.wrong")}
            </p>
          )}
          {refused && (
            <p class="fault" role="alert">
              <Text most={600}>{refused.text}</Text>
            </p>
          )}
          <footer>
            <button type="submit" class="primary" disabled={busy}>
              <Icon name="play" />
              {t(call.view.value && !busy ? "tool.again" : "tool.call")}
            </button>
          </footer>
        </form>
      ) : (
        <p class="about">{t("tool.viewer")}</p>
      )}
      <Outcome call={call} />
    </section>
  );
}

function Raw({ form, args }: { form: Input; args: ReturnType<typeof useArguments> }): JSX.Element {
  const bad = args.wrong[0];
  return (
    <div class={bad ? "field bad" : "field"}>
      {!writable(form) && <p class="about">{t("tool.noschema")}</p>}
      <textarea
        class="code"
        rows={8}
        spellcheck={false}
        aria-label={t("tool.input")}
        aria-invalid={bad !== undefined}
        value={args.text}
        onInput={(e) => args.setText(e.currentTarget.value)}
      />
      {bad && (
        <p class="fault" role="alert">
          {t(`form.wrong.${bad.why}`, { limit: bad.limit ?? "" })}
        </p>
      )}
    </div>
  );
}

const looks: Record<string, string> = { success: "completed", error: "failed" };

/** What came of the call, and the log that says so. */
function Outcome({ call }: { call: Call }): JSX.Element | null {
  const v = call.view.value;
  const events = call.events.value;
  if (!v) return null;
  const over = v.status !== "queued" && v.status !== "running";
  return (
    <section class="outcome" aria-label={t("tool.result")} aria-live="polite">
      <header>
        <h4>{t("tool.result")}</h4>
        <StateChip state={looks[v.status] ?? v.status} />
        {over && <span class="about">{t("tool.took", { time: span(v.duration_ms) })}</span>}
      </header>
      {v.status === "unknown" && (
        <p class="loud">
          <Icon name="unknown" />
          {t("tool.unknown")}
        </p>
      )}
      {v.error && v.status !== "unknown" && (
        <p class="fault">
          <Text most={600}>{v.error}</Text>
        </p>
      )}
      {v.result !== undefined && v.result !== null && <Code value={shown(v.result)} />}
      {events.length > 0 && (
        <details>
          <summary>{t("tool.log")}</summary>
          <ol class="events">
            {events.map((e) => (
              <li key={e.sequence}>
                <span class="seq">{e.sequence}</span> <Time at={e.time} precise /> <code>{e.type}</code> <Text most={160}>{line(e)}</Text>
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}

/** A result as people read it: the text of an MCP server's one text, else the JSON. */
function shown(result: unknown): unknown {
  const only = Array.isArray(result) && result.length === 1 ? (result[0] as { type?: unknown; text?: unknown } | null) : undefined;
  return only?.type === "text" && typeof only.text === "string" ? only.text : result;
}
