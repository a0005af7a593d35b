import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { login, signIn } from "../app.ts";
import { away, look, provider, trouble } from "../model/signin.ts";
import { t } from "../words.ts";
import { Dialog, Text } from "./basics.tsx";

/** Asks for an API key or a token. What the page shows stays behind it. */
export function Login(): JSX.Element {
  const [value, setValue] = useState("");
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => void look(), []);
  const at = provider.value;
  return (
    <Dialog label={t("login.title")} class="login">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          setBusy(true);
          void signIn(value.trim(), keep).finally(() => setBusy(false));
        }}
      >
        <h2>{t("login.title")}</h2>
        <p>{t("login.text")}</p>
        {login.value === "expired" && (
          <p class="fault" role="alert">
            {t("login.expired")}
          </p>
        )}
        <label>
          {t("login.token")}
          <input type="password" autocomplete="current-password" required value={value} onInput={(e) => setValue(e.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={keep} onChange={(e) => setKeep(e.currentTarget.checked)} />
          {t("login.keep")}
        </label>
        {trouble.value !== "" && (
          <p class="fault" role="alert">
            <Text most={300}>{trouble.value}</Text>
          </p>
        )}
        {login.value === "wrong" && (
          <p class="fault" role="alert">
            {t("login.wrong")}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy || value.trim() === ""}>
          {t("login.go")}
        </button>
        {at && (
          <button type="button" onClick={() => void away(at, keep)}>
            {t("login.oidc", { host: new URL(at.issuer).host })}
          </button>
        )}
      </form>
    </Dialog>
  );
}
