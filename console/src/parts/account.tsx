import type { JSX } from "preact";
import { density, login, me, type setting, signedIn, signOut, theme, tongue, zone } from "../app.ts";
import { t, type Word } from "../words.ts";
import { Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { Segments } from "./segments.tsx";

const id = "account";

/** Who this page is, with the settings of the page in a menu. */
export function Account({ keys }: { keys: () => void }): JSX.Element {
  const who = me.value;
  const name = who?.subject || t("account.none");
  return (
    <>
      <button type="button" class="quiet account" popovertarget={id} title={t("account.menu")}>
        <span class="only-read">{t("account.menu")}</span>
        <i aria-hidden="true">{[...name][0]?.toUpperCase()}</i>
        <span>
          <b>
            <Text most={24}>{name}</Text>
          </b>
          {who && (
            <small>
              <Text most={24}>{who.tenant}</Text>
            </small>
          )}
        </span>
        <Icon name="up" />
      </button>
      <div id={id} popover="auto" class="account-menu">
        <Settings />
        <hr />
        <button
          type="button"
          class="quiet"
          onClick={() => {
            document.getElementById(id)?.hidePopover();
            keys();
          }}
        >
          <Icon name="keys" />
          {t("keys.title")}
          <kbd>?</kbd>
        </button>
        {signedIn.value ? (
          <button type="button" class="quiet" onClick={signOut}>
            <Icon name="person" />
            {t("login.out")}
          </button>
        ) : (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              document.getElementById(id)?.hidePopover();
              login.value = "asks";
            }}
          >
            <Icon name="person" />
            {t("login.title")}
          </button>
        )}
      </div>
    </>
  );
}

/** How the page is shown: each choice at once. */
export function Settings(): JSX.Element {
  return (
    <div class="settings">
      <Setting name="theme" of={theme} all={["auto", "light", "dark"]} press="t" />
      <Setting name="language" of={tongue} all={["auto", "en", "zh"]} />
      <Setting name="zone" of={zone} all={["local", "utc"]} press="z" />
      <Setting name="density" of={density} all={["roomy", "dense"]} />
    </div>
  );
}

function Setting<T extends string>(p: {
  name: "theme" | "language" | "zone" | "density";
  of: ReturnType<typeof setting<T>>["s"];
  all: readonly T[];
  /** The key that chooses the next one. */
  press?: string;
}): JSX.Element {
  const label = t(p.name);
  return (
    <div>
      <span aria-hidden="true">
        {label}
        {p.press && <kbd>{p.press}</kbd>}
      </span>
      <Segments
        name={p.name}
        label={label}
        all={p.all}
        chosen={p.of.value}
        choose={(one) => {
          p.of.value = one;
        }}
        text={(one) => t(`${p.name}.${one}` as Word)}
      />
    </div>
  );
}
