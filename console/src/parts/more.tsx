import type { JSX } from "preact";
import { login, signedIn, signOut } from "../app.ts";
import { go, room } from "../route.ts";
import { t } from "../words.ts";
import { Settings } from "./account.tsx";
import { Dialog } from "./basics.tsx";
import { Icon, type IconName } from "./icons.tsx";

/** On a phone: the rooms and settings for which the bar has no place. */
export function More({ close, search }: { close: () => void; search: () => void }): JSX.Element {
  const away = (f: () => void) => () => {
    close();
    f();
  };
  const item = (icon: IconName, text: string, run: () => void) => (
    <li>
      <button type="button" class="quiet" onClick={run}>
        <Icon name={icon} />
        {text}
      </button>
    </li>
  );
  return (
    <Dialog label={t("menu.more")} close={close} class="more-sheet">
      <ul>
        {item("search", t("palette.open"), away(search))}
        {item(
          "swarm",
          t("nav.swarm"),
          away(() => go(room("swarm"))),
        )}
        {item(
          "gear",
          t("nav.installation"),
          away(() => go(room("installation"))),
        )}
        {signedIn.value
          ? item("person", t("login.out"), signOut)
          : item(
              "person",
              t("login.title"),
              away(() => {
                login.value = "asks";
              }),
            )}
      </ul>
      <Settings />
      <button type="button" onClick={close}>
        {t("keys.close")}
      </button>
    </Dialog>
  );
}
