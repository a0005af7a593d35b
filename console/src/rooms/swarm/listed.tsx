import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { List } from "../../model/lists.ts";
import { Face, Failure, Skeleton, Text } from "../../parts/basics.tsx";
import { t } from "../../words.ts";

/** What all lists of the swarm are given. */
export interface Filtered {
  filter: string;
  clear: () => void;
}

/** Whether a row has the text of the filter in one of its texts. */
export function has(filter: string, ...texts: (string | undefined)[]): boolean {
  return filter === "" || texts.some((x) => x?.toLowerCase().includes(filter));
}

/** A list that was read, or the face of why it is not there. */
export function Listed<T>(
  p: Filtered & {
    of: List<T>;
    what: "agents" | "tools" | "tasks";
    fits: (row: T) => boolean;
    children: (rows: readonly T[]) => ComponentChildren;
  },
): JSX.Element {
  useEffect(() => () => p.of.close(), [p.of]);
  const all = p.of.rows.value;
  if (p.of.error.value && !all) return <Failure error={p.of.error.value} again={() => void p.of.read()} />;
  if (!all) return <Skeleton />;
  if (all.length === 0) return <Face title={t(`swarm.${p.what}.empty`)} text={t(`swarm.${p.what}.empty.text`)} />;
  const rows = all.filter(p.fits);
  const { more } = p.of;
  return (
    <>
      {rows.length > 0 ? (
        p.children(rows)
      ) : more.value ? (
        <Face title={t("face.newest", { n: all.length })} action={{ text: t("face.older"), go: () => void p.of.next() }} />
      ) : (
        <Face title={t("face.nothing")} action={{ text: t("face.clear"), go: p.clear }} />
      )}
      {rows.length > 0 && more.value && (
        <button type="button" class="more" onClick={() => void p.of.next()}>
          {t("swarm.more")}
        </button>
      )}
    </>
  );
}

/** Short words, each in a chip. */
export function Words({ all, most = 6 }: { all: readonly string[]; most?: number }): JSX.Element {
  return (
    <span class="words">
      {all.slice(0, most).map((c, i) => (
        <span key={i} class="chip small">
          <Text most={40}>{c}</Text>
        </span>
      ))}
      {all.length > most && <span class="about">+{all.length - most}</span>}
    </span>
  );
}

/** Whether somebody is connected: a sign and a word. */
export function Presence({ here }: { here: boolean }): JSX.Element {
  return (
    <span class={here ? "presence here" : "presence"}>
      <i />
      {t(here ? "swarm.here" : "swarm.away")}
    </span>
  );
}
