import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { copy, signedIn } from "../app.ts";
import { languages, snippet } from "../fold/snippet.ts";
import type { Message } from "../model/act.ts";
import { t } from "../words.ts";
import { Dialog } from "./basics.tsx";
import { Code } from "./code.tsx";

/** The language that was shown last. */
const chosen = signal<(typeof languages)[number]>("curl");

/** Programs that send what the composer would send. */
export function SampleDialog(p: { message: Message; session: string | undefined; close: () => void }): JSX.Element {
  const text = snippet(chosen.value, {
    origin: location.origin,
    session: p.session,
    content: p.message.content,
    plan: p.message.mode === "plan" ? { confirm: p.message.confirm } : undefined,
    login: signedIn.value,
  });
  return (
    <Dialog label={t("sample.title")} close={p.close} class="sample">
      <h2>{t("sample.title")}</h2>
      <fieldset class="segments">
        <legend class="only-read">{t("sample.language")}</legend>
        {languages.map((l) => (
          <label key={l} class={chosen.value === l ? "on" : ""}>
            <input
              type="radio"
              name="language"
              checked={chosen.value === l}
              onChange={() => {
                chosen.value = l;
              }}
            />
            {l}
          </label>
        ))}
      </fieldset>
      <Code value={text} />
      {signedIn.value && <p class="hint">{t("sample.token")}</p>}
      <div class="actions">
        <button type="button" onClick={p.close}>
          {t("sample.close")}
        </button>
        <button type="button" class="primary" onClick={() => void copy(text)}>
          {t("sample.copy")}
        </button>
      </div>
    </Dialog>
  );
}
