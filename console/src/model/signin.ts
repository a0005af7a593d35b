import { signal } from "@preact/signals";
import type { OIDCLogin } from "@waggle-dev/client";
import { begin, consoleInfo, reason } from "../app.ts";
import { go, parse } from "../route.ts";
import { t } from "../words.ts";

/** The provider at which people sign in, once it is known. */
export const provider = signal<OIDCLogin | undefined>(undefined);

/** Why the last sign-in there failed. */
export const trouble = signal("");

/** Finds out where people sign in. */
export async function look(): Promise<OIDCLogin | undefined> {
  provider.value ??= (await consoleInfo())?.oidc;
  return provider.value;
}

/** Leaves for the provider. The page comes back to what it shows now. */
export async function away(at: OIDCLogin, keep: boolean): Promise<void> {
  trouble.value = "";
  try {
    const oidc = await import("./oidc.ts");
    await oidc.leave(at, keep, location.pathname + location.search);
  } catch (error) {
    trouble.value = t("login.trouble", { why: reason(error) });
  }
}

/** The provider has sent the reader back: finishes the sign-in, and shows what was shown before. */
export async function returned(): Promise<void> {
  let next = "/";
  const answer = new URL(location.href);
  history.replaceState(null, "", next); // the code does not stay in the address
  try {
    const at = await look();
    if (!at) throw new Error(t("login.begun"));
    const oidc = await import("./oidc.ts");
    next = await oidc.finish(at, answer);
  } catch (error) {
    trouble.value = t("login.trouble", { why: reason(error) });
    await begin();
  }
  const place = new URL(next, location.origin);
  go(parse(place.pathname, place.search), "replace");
}
