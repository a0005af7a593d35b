import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { copy, signedIn } from "../app.ts";
import type { Message } from "../fold/message.ts";
import { type Language, languagesOf, snippet } from "../fold/snippet.ts";
import { t } from "../words.ts";
import { Dialog } from "./basics.tsx";
import { Code } from "./code.tsx";
import { Segments } from "./segments.tsx";

/** The language that was shown last. */
const chosen = signal<Language>("curl");

/** Programs that send what the composer would send. */
export function SampleDialog(p: { message: Message; session: string | undefined; close: () => void }): JSX.Element {
  const languages = languagesOf(p.message);
  const language = languages.includes(chosen.value) ? chosen.value : "curl";
  const text = snippet(language, {
    origin: location.origin,
    session: p.session,
    message: p.message,
    login: signedIn.value,
  });
  return (
    <Dialog label={t("sample.title")} close={p.close} class="sample">
      <h2>{t("sample.title")}</h2>
      <Segments
        name="language"
        label={t("sample.language")}
        all={languages}
        chosen={language}
        choose={(l) => {
          chosen.value = l;
        }}
        text={(l) => l}
      />
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
