import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";

/** Whether the page fits a query, now and after each change. */
function media(text: string) {
  const query = typeof matchMedia === "function" ? matchMedia(text) : undefined;
  const fits = signal(query?.matches ?? false);
  query?.addEventListener("change", (e) => {
    fits.value = e.matches;
  });
  return fits;
}

/** Whether the page is as narrow as a phone. */
export const narrow = media("(width < 720px)");

/** Whether the page has room for tables. */
export const wide = media("(width >= 1200px)");

/** What can be done with what a room shows: side by side, or on a phone behind a button. */
export function Menu({ children }: { children: ComponentChildren }): JSX.Element {
  const id = useId();
  if (!narrow.value) return <>{children}</>;
  return (
    <>
      <button type="button" class="quiet" popovertarget={id} aria-label={t("menu.more")}>
        <Icon name="dots" />
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a click on one of its buttons, by whatever means, shuts it */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: its buttons act */}
      <div id={id} popover="auto" class="menu" onClick={(e) => (e.target as Element).closest("button") && e.currentTarget.hidePopover()}>
        {children}
      </div>
    </>
  );
}
