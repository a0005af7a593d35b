import type { ToolDetail } from "@waggle-dev/client";
import { WaggleError } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { copy, mayAct, now, reason, say, signedIn, span } from "../../app.ts";
import { formOf } from "../../fold/form.ts";
import { line } from "../../fold/lines.ts";
import { callSnippet } from "../../fold/snippet.ts";
import { Reading } from "../../model/installation.ts";
import { Call } from "../../model/swarm.ts";
import { As, Typing, useArguments, writable } from "../../parts/arguments.tsx";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../../parts/basics.tsx";
import { Code } from "../../parts/code.tsx";
import { Icon } from "../../parts/icons.tsx";
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
  if (!tool && error instanceof WaggleError && error.status === 404) return <Gone at={at} />;
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
      <Calling key={JSON.stringify(tool.input_schema)} tool={tool} at={at} />
    </article>
  );
}

/** The tool has gone with its provider. A call that was made before still has its outcome. */
function Gone({ at }: { at: ToolPlace }): JSX.Element {
  const call = useCall(at);
  return (
    <div class="tool-page">
      <Face title={t("tool.none")} text={t("tool.none.text")} action={{ text: t("tool.back"), go: back }} />
      <Outcome call={call} />
    </div>
  );
}

/** The calls of this page: at first that of the address. */
function useCall(at: ToolPlace): Call {
  const call = useMemo(() => new Call(), []);
  useEffect(() => {
    if (at.call) void call.show(at.call);
    return () => call.close();
  }, [call]);
  return call;
}

/** The form, and beside it what came of the call and who else may make it. */
function Calling({ tool, at }: { tool: ToolDetail; at: ToolPlace }): JSX.Element {
  const call = useCall(at);
  return (
    <div class="sides">
      <Try tool={tool} at={at} call={call} />
      <div class="beside">
        <Outcome call={call} />
        <About tool={tool} />
      </div>
    </div>
  );
}

function About({ tool }: { tool: ToolDetail }): JSX.Element {
  return (
    <aside aria-label={t("tool.who")}>
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
  );
}

/** The form of the tool's arguments, with which it is called. */
function Try({ tool, at, call }: { tool: ToolDetail; at: ToolPlace; call: Call }): JSX.Element {
  const form = useMemo(() => formOf(tool.input_schema), [tool]);
  const args = useArguments(form);
  const box = useRef<HTMLFormElement>(null);
  const refused = call.refused.value;
  const placed = refused?.at !== undefined && args.mode === "form" ? { at: refused.at, text: refused.text } : undefined;
  /** The arguments; without any the first field that is wrong has the focus. */
  const read = (): Record<string, unknown> | undefined => {
    const value = args.read() as Record<string, unknown> | undefined;
    if (value === undefined) setTimeout(() => box.current?.querySelector<HTMLElement>(".field.bad :is(input, select, textarea)")?.focus());
    return value;
  };
  const send = () => {
    const value = read();
    if (value === undefined) return;
    const named = (id: string) => go({ room: "swarm", tab: "tools", tool: { ...at, call: id } }, "replace");
    void call.start(tool.provider, tool.name, { kind: tool.kind, arguments: value }, named);
  };
  const curl = () => {
    const value = read();
    if (value === undefined) return;
    const { provider, name, kind } = tool;
    const text = callSnippet({ origin: location.origin, login: signedIn.value, provider, tool: name, kind, arguments: value });
    copy(text).catch((error: unknown) => say(reason(error)));
  };
  const busy = call.busy.value;
  return (
    <section class="try" aria-label={t("tool.try")}>
      <header>
        <h3>{t("tool.try")}</h3>
        {writable(form) && mayAct.value && <As args={args} />}
      </header>
      {mayAct.value ? (
        <form
          ref={box}
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            send();
          }}
        >
          <Typing
            form={form}
            args={args}
            said={placed}
            typed={() => {
              call.refused.value = undefined;
            }}
          />
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
            <button type="button" onClick={curl}>
              <Icon name="code" />
              {t("tool.curl")}
            </button>
          </footer>
        </form>
      ) : (
        <p class="about">{t("tool.viewer")}</p>
      )}
    </section>
  );
}

const looks: Record<string, string> = { success: "completed", error: "failed" };

/** The course of the call, as its log says it, and what came of it. */
function Outcome({ call }: { call: Call }): JSX.Element | null {
  const v = call.view.value;
  const events = call.events.value;
  const box = useRef<HTMLElement>(null);
  const called = useRef(false);
  called.current ||= call.busy.value;
  useEffect(() => {
    if (called.current) box.current?.scrollIntoView({ block: "nearest" });
  }, [v?.status]);
  if (!v) return null;
  const over = v.status !== "queued" && v.status !== "running";
  const began = events[0] && Date.parse(events[0].time);
  return (
    <section class="outcome" aria-label={t("tool.result")} ref={box}>
      <header aria-live="polite">
        <h3>{t("tool.result")}</h3>
        <StateChip state={looks[v.status] ?? v.status} />
        {over && <span class="about">{t("tool.took", { time: span(v.duration_ms) })}</span>}
      </header>
      {!over && began !== undefined && (
        <p class="about">{t("tool.since", { time: span(Math.max(0, Math.floor((now.value - began) / 1000) * 1000)) })}</p>
      )}
      {v.status === "unknown" && (
        <p class="loud">
          <Icon name="unknown" />
          {t("tool.unknown")}
        </p>
      )}
      {v.error && v.status !== "unknown" && (
        <p class="fault" role="alert">
          <Text most={600}>{v.error}</Text>
        </p>
      )}
      {v.result !== undefined && v.result !== null && <Code value={shown(v.result)} />}
      {events.length > 0 && (
        <>
          <h4>{t("tool.log")}</h4>
          <ol class="events">
            {events.map((e) => (
              <li key={e.sequence}>
                <span class="seq">{e.sequence}</span>
                <Time at={e.time} precise />
                <code>{e.type}</code>
                {e.type !== "call.finished" && (
                  <span class="line">
                    <Text most={160}>{line(e)}</Text>
                  </span>
                )}
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

/** A result as people read it: the text of an MCP server's one text, else the JSON. */
function shown(result: unknown): unknown {
  const only = Array.isArray(result) && result.length === 1 ? (result[0] as { type?: unknown; text?: unknown } | null) : undefined;
  return only?.type === "text" && typeof only.text === "string" ? only.text : result;
}
