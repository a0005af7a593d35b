import type { JSX, RefObject } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Draft, draftOf, empty, filled, type Wrong } from "../fold/draft.ts";
import { formOf, type Input } from "../fold/form.ts";
import { t } from "../words.ts";
import { Fields } from "./form.tsx";
import { Segments } from "./segments.tsx";

type Mode = "form" | "json";

/** Whether the arguments have a form. */
export const writable = (form: Input) => form.kind !== "json";

/** The arguments of a call, as they are typed: in the form, or as JSON. At first they are the given ones. */
export function useArguments(form: Input, given?: unknown) {
  const [first] = useState(() => (given === undefined ? empty(form) : draftOf(form, given)));
  const [mode, setMode] = useState<Mode>(writable(form) && first !== undefined ? "form" : "json");
  const [draft, setDraft] = useState<Draft>(first ?? empty(form));
  const [text, setText] = useState(JSON.stringify(given ?? {}, null, 2));
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

/** What has been typed, and what is wrong with it. */
type Arguments = ReturnType<typeof useArguments>;

/** Chooses between the form and JSON. */
export function As({ args }: { args: Arguments }): JSX.Element {
  return (
    <Segments
      name="as"
      label={t("tool.as")}
      all={["form", "json"] as const}
      chosen={args.mode}
      choose={args.turn}
      text={(m) => t(`tool.${m}`)}
    />
  );
}

/** The fields that arguments are typed into, with what is wrong with them. */
export function Typing(p: {
  form: Input;
  args: Arguments;
  said?: { at: string; text: string } | undefined;
  typed?: () => void;
}): JSX.Element {
  const { form, args } = p;
  return (
    <>
      {args.mode === "form" ? (
        <Fields
          input={form}
          draft={args.draft}
          change={(d) => {
            args.setDraft(d ?? {});
            if (args.wrong.length > 0) args.setWrong(filled(form, d ?? {}).wrong);
            p.typed?.();
          }}
          faults={{ wrong: args.wrong, said: p.said }}
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
    </>
  );
}

/** Changes the arguments of a call. read returns them, and undefined while something is wrong with them. */
export function ArgumentsEditor(p: { schema: unknown; given: unknown; read: RefObject<(() => unknown) | null> }): JSX.Element {
  const form = useMemo(() => formOf(p.schema), [p.schema]);
  const args = useArguments(form, p.given);
  p.read.current = args.read;
  useEffect(
    () => () => {
      p.read.current = null;
    },
    [],
  );
  return (
    <div class="arguments">
      {writable(form) && <As args={args} />}
      <Typing form={form} args={args} />
    </div>
  );
}

function Raw({ form, args }: { form: Input; args: Arguments }): JSX.Element {
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
