import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { span, title } from "../app.ts";
import { align, difference, type Pair } from "../fold/compare.ts";
import type { Deed, Sheet } from "../fold/run.ts";
import { readSide, type Side } from "../model/compare.ts";
import { dollars } from "../parts/amounts.ts";
import { Face, Failure, Skeleton, StateChip, Text } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { Rows } from "../parts/rows.tsx";
import { go, type Route, type RunRef, room } from "../route.ts";
import { language, t } from "../words.ts";

type CompareRoute = Extract<Route, { room: "compare" }>;

const height = 56;

/** Two runs beside each other: what both did, and where they differ. */
export function Compare({ at }: { at: CompareRoute }): JSX.Element {
  useEffect(() => {
    title.value = t("compare.title");
  }, []);
  const a = useSide(at.a);
  const b = useSide(at.b);
  if (!at.a || !at.b)
    return (
      <Face
        heading
        title={t(at.a || at.b ? "compare.more" : "compare.none")}
        text={t("compare.none.text")}
        action={{ text: t("session.back"), go: () => go(room("sessions")) }}
      />
    );
  for (const side of [a, b]) if (side.error) return <Failure error={side.error} again={side.again} />;
  if (!a.side || !b.side) return <Skeleton />;
  return <Both at={at} a={a.side} b={b.side} />;
}

/** One side, as it is read. */
function useSide(ref: RunRef | undefined): { side: Side | undefined; error: unknown; again: () => void } {
  const [side, setSide] = useState<Side | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify(ref ?? null);
  useEffect(() => {
    setError(undefined);
    if (!ref) return;
    const stop = new AbortController();
    readSide(ref, stop.signal).then(setSide, (e) => !stop.signal.aborted && setError(e));
    return () => stop.abort();
  }, [key, turn]);
  return { side, error, again: () => setTurn(turn + 1) };
}

function Both({ at, a, b }: { at: CompareRoute; a: Side; b: Side }): JSX.Element {
  const pairs = useMemo(() => align(a.sheet.deeds, b.sheet.deeds), [a, b]);
  const differing = useMemo(() => pairs.flatMap((p, i) => (p.differs ? [i] : [])), [pairs]);
  const [picked, pick] = useState(-1);
  useLayoutEffect(() => pick(differing[0] ?? -1), [pairs]);
  const jump = (to: "next" | "previous") => {
    const next = to === "next" ? differing.find((i) => i > picked) : differing.findLast((i) => i < picked);
    pick(next ?? (to === "next" ? differing[0] : differing.at(-1)) ?? -1);
  };
  useLayoutEffect(() => {
    const press = (e: KeyboardEvent) => {
      const field = (e.target as HTMLElement).closest("input, textarea, select");
      if (field || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
      if (e.key === "n") jump("next");
      else if (e.key === "p") jump("previous");
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const swap = () => go({ ...at, a: at.b, b: at.a }, "replace");
  const n = differing.length;
  const pair = pairs[picked];
  return (
    <section class="compare" aria-label={t("compare.title")}>
      <header class="head">
        <div class="line">
          <h1>{t("compare.title")}</h1>
          <span class="count" role="status">
            {n === 0 ? t("compare.same") : n === 1 ? t("compare.difference") : t("compare.differences", { n })}
          </span>
          <span class="grow" />
          <button type="button" class="quiet" disabled={n === 0} onClick={() => jump("previous")}>
            <Icon name="up" />
            <span class="wide">{t("compare.previous")}</span>
          </button>
          <button type="button" class="quiet" disabled={n === 0} onClick={() => jump("next")}>
            <Icon name="down" />
            <span class="wide">{t("compare.next")}</span>
          </button>
          <button type="button" class="quiet" onClick={swap}>
            <Icon name="compare" />
            <span class="wide">{t("compare.swap")}</span>
          </button>
        </div>
      </header>
      <div class="sides">
        <Head
          side={a}
          name={t("compare.a")}
          other={b.sheet}
          change={(run) => go({ ...at, a: { session: a.ref.session, run } }, "replace")}
        />
        <Head
          side={b}
          name={t("compare.b")}
          other={a.sheet}
          change={(run) => go({ ...at, b: { session: b.ref.session, run } }, "replace")}
        />
      </div>
      <div class={pair ? "pairs with-detail" : "pairs"}>
        {pairs.length === 0 ? (
          <Face title={t("talk.empty")} />
        ) : (
          <Rows rows={pairs} height={height} label={t("compare.deeds")} picked={picked} pick={pick} row={(p) => <Row pair={p} />} />
        )}
        {pair && <Detail pair={pair} close={() => pick(-1)} />}
      </div>
    </section>
  );
}

/** What a run is, and what it took; with the difference to the other one. */
function Head(p: { side: Side; name: string; other: Sheet; change: (run: string) => void }): JSX.Element {
  const { ref, runs, sheet } = p.side;
  const { other } = p;
  return (
    <article class="side" aria-label={p.name}>
      <header>
        <StateChip state={sheet.state} small />
        <Link to={{ room: "sessions", id: ref.session, view: "talk", q: "", state: "", ...(ref.at ? { at: ref.at } : {}) }}>
          <Text most={90}>{sheet.question || t("sessions.untitled")}</Text>
        </Link>
      </header>
      {runs.length > 1 && (
        <label class="check">
          {t("compare.run")}
          <select value={ref.run} onChange={(e) => p.change(e.currentTarget.value)}>
            {runs.slice(-200).map((r, i) => (
              <option key={r.run} value={r.run}>
                {Math.max(0, runs.length - 200) + i + 1}. {r.text.slice(0, 60)}
              </option>
            ))}
          </select>
        </label>
      )}
      <dl>
        <dt>{t("compare.time")}</dt>
        <dd>
          {sheet.ms === undefined ? "–" : span(sheet.ms)} <Delta by={minus(sheet.ms, other.ms)} text={span} />
        </dd>
        <dt>{t("compare.tokens")}</dt>
        <dd>
          {sheet.input + sheet.output === 0 ? (
            t("compare.noTokens")
          ) : (
            <>
              {count(sheet.input)} {sheet.cached > 0 && `(${t("compare.cached", { n: count(sheet.cached) })}) `}/ {count(sheet.output)}{" "}
              <Delta by={minus(sheet.input + sheet.output, other.input + other.output)} text={count} />
            </>
          )}
        </dd>
        <dt>{t("compare.cost")}</dt>
        <dd>
          {sheet.cost === undefined ? t("compare.noPrice") : dollars(sheet.cost)}{" "}
          <Delta by={minus(sheet.cost, other.cost)} text={dollars} />
        </dd>
      </dl>
    </article>
  );
}

const minus = (a: number | undefined, b: number | undefined) => (a === undefined || b === undefined ? 0 : a - b);
const count = (n: number) => n.toLocaleString(language());

/** By how much this side has more or less than the other one. */
function Delta({ by, text }: { by: number; text: (n: number) => string }): JSX.Element | null {
  if (by === 0) return null;
  return <small class={by > 0 ? "more" : "less"}>{`${by > 0 ? "+" : "−"}${text(Math.abs(by))}`}</small>;
}

function Row({ pair }: { pair: Pair }): JSX.Element {
  return (
    <div class={pair.differs ? "pair differs" : "pair"}>
      <Cell deed={pair.a} />
      <span class="sign">
        {pair.differs ? "≠" : "="}
        {pair.differs && <span class="only-read">{t("compare.differs")}</span>}
      </span>
      <Cell deed={pair.b} />
    </div>
  );
}

function Cell({ deed: d }: { deed: Deed | undefined }): JSX.Element {
  if (!d) return <span class="cell none">{t("compare.nothing")}</span>;
  return (
    <span class={d.step !== "" && d.kind !== "step" ? "cell of-step" : "cell"}>
      <small>{t(`compare.${d.kind}`)}</small>
      <b>
        <Text most={60}>{d.name || (typeof d.value["text"] === "string" ? d.value["text"] : "")}</Text>
      </b>
      <StateChip state={d.state} small />
      <time>{d.ms === undefined ? "" : span(d.ms)}</time>
    </span>
  );
}

/** Where a pair differs, key by key. */
function Detail({ pair, close }: { pair: Pair; close: () => void }): JSX.Element {
  const { a, b } = pair;
  const all = a && b ? difference({ state: a.state, name: a.name, ...a.value }, { state: b.state, name: b.name, ...b.value }) : [];
  const one = a ?? b;
  return (
    <aside class="detail" aria-label={t("compare.detail")}>
      <header>
        <h2>
          <Text>{one?.name || t(`compare.${one?.kind ?? "answer"}`)}</Text>
        </h2>
        <button type="button" class="quiet" aria-label={t("keys.close")} onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <section class="changes" tabIndex={0} aria-label={t("compare.detail")}>
        {(!a || !b) && one ? (
          <Change path={t("compare.only")} a={a?.value} b={b?.value} />
        ) : all.length === 0 ? (
          <p>{t("compare.equal")}</p>
        ) : (
          all.map((d) => <Change key={d.path.join("\0")} path={d.path.join(" › ")} a={d.a} b={d.b} />)
        )}
      </section>
    </aside>
  );
}

function Change({ path, a, b }: { path: string; a: unknown; b: unknown }): JSX.Element {
  return (
    <section>
      <h3>
        <Text>{path}</Text>
      </h3>
      {a !== undefined && <Value name={t("compare.a")} sign="−" value={a} />}
      {b !== undefined && <Value name={t("compare.b")} sign="+" value={b} />}
    </section>
  );
}

function Value({ name, sign, value }: { name: string; sign: string; value: unknown }): JSX.Element {
  return (
    <p class={sign === "+" ? "value added" : "value removed"}>
      <span class="only-read">{name}</span>
      <code>
        {sign} <Text most={4000}>{typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "")}</Text>
      </code>
    </p>
  );
}
