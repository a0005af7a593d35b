import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { plain } from "../fold/text.ts";
import { t } from "../words.ts";
import { Dialog } from "./basics.tsx";

/** Asks before something that cannot be undone: the reader types its name. */
export function ConfirmDialog(p: {
  title: string;
  text: string;
  name: string;
  action: string;
  run: () => void;
  close: () => void;
}): JSX.Element {
  const [typed, type] = useState("");
  const id = useId();
  const sure = typed.trim() === p.name;
  return (
    <Dialog label={p.title} close={p.close} class="confirm">
      <form
        method="dialog"
        onSubmit={(e) => {
          e.preventDefault();
          if (sure) p.run();
        }}
      >
        <h2>{p.title}</h2>
        <p>{p.text}</p>
        <label for={id}>
          {t("confirm.type")} <code class="name">{plain(p.name)}</code>
        </label>
        <input
          id={id}
          type="text"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={typed}
          onInput={(e) => type(e.currentTarget.value)}
        />
        <div class="actions">
          <button type="button" onClick={p.close}>
            {t("confirm.cancel")}
          </button>
          <button type="submit" class="danger" disabled={!sure}>
            {p.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
