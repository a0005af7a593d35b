import { WaggleError } from "@waggle-dev/client";
import type { ComponentChildren, JSX } from "preact";
import { clock, me, reason } from "../app.ts";
import type { Reading } from "../model/installation.ts";
import { t } from "../words.ts";
import { Face, Failure, Skeleton, Text } from "./basics.tsx";

/** What only operators see, for others. */
export function Refused(): JSX.Element {
  return <Face title={t("refused.title")} text={t("refused.text", { roles: me.value?.roles.join(", ") ?? "" })} />;
}

/** What was read, or the face of why it is not there: it loads, it failed, or this principal may not see it. */
export function Shown<A>(p: { of: Reading<A>; value: unknown; rows?: number; children: ComponentChildren }): JSX.Element {
  const error = p.of.error.value;
  if (p.value !== undefined)
    return (
      <>
        {p.children}
        <Asof of={p.of} />
      </>
    );
  if (error instanceof WaggleError && error.status === 403) return <Refused />;
  if (error) return <Failure error={error} again={() => void p.of.read()} />;
  return <Skeleton rows={p.rows ?? 4} />;
}

/** Since when what is shown holds. After a failed read it says why it is not newer. */
function Asof<A>({ of }: { of: Reading<A> }): JSX.Element {
  const error = of.error.value;
  return (
    <p class="asof">
      {t("asof", { time: clock(of.at.value) })}
      {error !== undefined && (
        <span class="fault" role="alert">
          <Text most={200}>{reason(error)}</Text>
        </span>
      )}
      <button type="button" class="quiet" onClick={() => void of.read()}>
        {t("asof.again")}
      </button>
    </p>
  );
}
