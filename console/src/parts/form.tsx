import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { zone } from "../app.ts";
import { type Draft, empty, type Wrong } from "../fold/draft.ts";
import type { Field, Input } from "../fold/form.ts";
import { plain } from "../fold/text.ts";
import { momentOf, zoneless } from "../fold/zone.ts";
import { t } from "../words.ts";
import { Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";

/** What is wrong, by the place; and a text of the server for a place. */
export interface Faults {
  wrong: readonly Wrong[];
  said?: { at: string; text: string } | undefined;
}

interface Place<I extends Input = Input> {
  input: I;
  draft: Draft | undefined;
  change: (d: Draft | undefined) => void;
  at: string;
  name: string;
  required: boolean;
  faults: Faults;
}

/** The fields of a form. */
export function Fields(p: Omit<Place, "name" | "required" | "at">): JSX.Element {
  if (p.input.kind === "object" && p.input.fields.length === 0) return <p class="about">{t("form.empty")}</p>;
  if (p.input.kind === "object") return <Members {...p} input={p.input} at="" name="" required />;
  return <One {...p} at="" name={t("tool.input")} required about="" usual="" />;
}

function Members(p: Place<Extract<Input, { kind: "object" }>>): JSX.Element {
  const drafts = (p.draft ?? {}) as Record<string, Draft>;
  const set = (name: string, d: Draft | undefined) => {
    const { [name]: _, ...rest } = drafts;
    p.change(d === undefined ? rest : { ...rest, [name]: d });
  };
  return (
    <div class="fields">
      {p.input.fields.map((f: Field) => (
        <One
          key={f.name}
          input={f.input}
          draft={Object.hasOwn(drafts, f.name) ? drafts[f.name] : undefined}
          change={(d) => set(f.name, d)}
          at={`${p.at}/${f.name.replaceAll("~", "~0").replaceAll("/", "~1")}`}
          name={plain(f.title)}
          about={f.about}
          usual={f.usual}
          required={f.required}
          faults={p.faults}
        />
      ))}
    </div>
  );
}

/** One field: its name, what it is for, its input, and what is wrong with it. */
function One(p: Place & { about: string; usual: string }): JSX.Element {
  const id = useId();
  const wrong = p.faults.wrong.find((w) => w.at === p.at);
  const said = p.faults.said?.at === p.at ? p.faults.said.text : undefined;
  const { input } = p;
  const group = input.kind === "object" || input.kind === "list" || input.kind === "variant";
  const about = [p.about, ...hints(p), p.usual && t("form.usual", { value: p.usual })].filter(Boolean).join(" · ");
  const bad = wrong !== undefined || said !== undefined;
  const described = [about ? `${id}-about` : "", bad ? `${id}-wrong` : ""].filter(Boolean).join(" ") || undefined;
  const label = (
    <>
      <Text most={80}>{p.name}</Text> <small class={p.required ? "must" : ""}>{t(p.required ? "form.required" : "form.optional")}</small>
    </>
  );
  const body = (
    <>
      {about && (
        <p class="about" id={`${id}-about`}>
          <Text most={400}>{about}</Text>
        </p>
      )}
      <Body {...p} id={id} described={described} bad={bad} />
      {bad && (
        <p class="fault" id={`${id}-wrong`}>
          {wrong ? t(`form.wrong.${wrong.why}`, { limit: wrong.limit ?? "" }) : <Text most={400}>{said ?? ""}</Text>}
        </p>
      )}
    </>
  );
  if (group)
    return (
      <fieldset class={bad ? "field group bad" : "field group"} data-at={p.at} aria-describedby={described}>
        <legend>{label}</legend>
        {body}
      </fieldset>
    );
  return (
    <div class={bad ? "field bad" : "field"} data-at={p.at}>
      <label for={id}>{label}</label>
      {body}
    </div>
  );
}

/** What has to be known before something is typed. */
function hints({ input, draft }: Place): string[] {
  if (input.kind !== "text") return [];
  const pattern = input.pattern ? [t("form.pattern", { pattern: plain(input.pattern) })] : [];
  if (input.format !== "date-time") return pattern;
  const sent = typeof draft === "string" && draft !== "" ? [t("form.sent", { value: plain(draft) })] : [];
  return [t(`form.zone.${zone.value}`), ...sent, ...pattern];
}

interface Shape {
  id: string;
  described: string | undefined;
  bad: boolean;
}

function Body(p: Place & Shape): JSX.Element {
  const { input } = p;
  switch (input.kind) {
    case "object":
      return p.required || p.draft !== undefined ? (
        <>
          <Members {...p} input={input} />
          {!p.required && <Without {...p} />}
        </>
      ) : (
        <Add {...p} />
      );
    case "list":
      return <Entries {...p} input={input} />;
    case "variant":
      return p.required || p.draft !== undefined ? <Variant {...p} input={input} /> : <Add {...p} />;
    case "choice":
    case "flag":
      return <Choice {...p} input={input} />;
    case "text":
    case "number":
    case "json":
      return <Line {...p} input={input} />;
  }
}

/** Has a part that may be absent filled in. */
function Add(p: Place): JSX.Element {
  return (
    <button type="button" onClick={() => p.change(empty(p.input))}>
      <Icon name="plus" />
      {t("form.add.member", { name: plain(p.name) })}
    </button>
  );
}

function Without(p: Place): JSX.Element {
  return (
    <button type="button" class="quiet" onClick={() => p.change(undefined)}>
      {t("form.remove")}
    </button>
  );
}

function Line(p: Place<Extract<Input, { kind: "text" | "number" | "json" }>> & Shape): JSX.Element {
  const { input } = p;
  const shared = {
    id: p.id,
    value: typeof p.draft === "string" ? p.draft : "",
    required: p.required,
    "aria-describedby": p.described,
    "aria-invalid": p.bad,
  };
  const take = (text: string) => p.change(text === "" && !p.required ? undefined : text);
  if (input.kind === "json" || (input.kind === "text" && input.format === "" && input.most > 200))
    return (
      <textarea
        {...shared}
        rows={input.kind === "json" ? 4 : 1}
        class={input.kind === "json" ? "code" : ""}
        spellcheck={false}
        onInput={(e) => take(e.currentTarget.value)}
      />
    );
  if (input.kind === "text" && input.format === "date")
    return <input {...shared} type="date" onInput={(e) => take(e.currentTarget.value)} />;
  if (input.kind === "text" && input.format === "date-time") {
    const utc = zone.value === "utc";
    return (
      <input
        {...shared}
        type="datetime-local"
        step={1}
        value={zoneless(shared.value, utc)}
        onInput={(e) => take(momentOf(e.currentTarget.value, utc))}
      />
    );
  }
  return (
    <input
      {...shared}
      type="text"
      inputMode={input.kind === "number" ? (input.integer ? "numeric" : "decimal") : undefined}
      autocomplete="off"
      spellcheck={false}
      onInput={(e) => take(e.currentTarget.value)}
    />
  );
}

function Choice(p: Place<Extract<Input, { kind: "choice" | "flag" }>> & Shape): JSX.Element {
  const { input } = p;
  const all =
    input.kind === "flag"
      ? ([
          ["true", t("form.yes")],
          ["false", t("form.no")],
        ] as const)
      : input.values.map((v, i) => [String(i), plain(input.titles[i] || (typeof v === "string" ? v : JSON.stringify(v)))] as const);
  return (
    <select
      id={p.id}
      value={typeof p.draft === "string" ? p.draft : ""}
      required={p.required}
      aria-describedby={p.described}
      aria-invalid={p.bad}
      onChange={(e) => p.change(e.currentTarget.value === "" ? undefined : e.currentTarget.value)}
    >
      <option value="">{t("form.none")}</option>
      {all.map(([value, text]) => (
        <option key={value} value={value}>
          {text.slice(0, 120)}
        </option>
      ))}
    </select>
  );
}

function Entries(p: Place<Extract<Input, { kind: "list" }>>): JSX.Element {
  const all = (p.draft ?? []) as readonly Draft[];
  const change = (next: readonly Draft[]) => p.change(next.length === 0 && !p.required ? undefined : next);
  return (
    <>
      <ol class="entries">
        {all.map((d, i) => (
          <li key={i}>
            <One
              input={p.input.of}
              draft={d}
              change={(x) => change(all.with(i, x ?? ""))}
              at={`${p.at}/${i}`}
              name={`${p.name} ${i + 1}`}
              about=""
              usual=""
              required
              faults={p.faults}
            />
            <button
              type="button"
              class="quiet"
              aria-label={`${t("form.remove")} ${plain(p.name)} ${i + 1}`}
              onClick={() => change(all.filter((_, j) => j !== i))}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ol>
      <button type="button" disabled={all.length >= Math.min(p.input.most, 200)} onClick={() => change([...all, empty(p.input.of)])}>
        <Icon name="plus" />
        {t("form.add.member", { name: plain(p.name) })}
      </button>
    </>
  );
}

function Variant(p: Place<Extract<Input, { kind: "variant" }>>): JSX.Element {
  const d = (p.draft ?? empty(p.input)) as { pick: string; value: Draft };
  const input = p.input.of[Number(d.pick)]?.input;
  return (
    <>
      <select
        aria-label={t("form.kind", { name: plain(p.name) })}
        value={d.pick}
        onChange={(e) => {
          const pick = e.currentTarget.value;
          const next = p.input.of[Number(pick)]?.input;
          if (next) p.change({ pick, value: empty(next) });
        }}
      >
        {p.input.of.map((v, i) => (
          <option key={i} value={String(i)}>
            {plain(v.title).slice(0, 120)}
          </option>
        ))}
      </select>
      {input && (
        <One
          input={input}
          draft={d.value}
          change={(value) => p.change({ pick: d.pick, value: value ?? "" })}
          at={p.at}
          name={p.name}
          about=""
          usual=""
          required
          faults={p.faults}
        />
      )}
      {!p.required && <Without {...p} />}
    </>
  );
}
