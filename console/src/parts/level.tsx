import type { JSX } from "preact";
import { t, type Word } from "../words.ts";
import { Icon, type IconName } from "./icons.tsx";

export type Level = "ok" | "warn" | "fail";

const levels: Record<Level, { icon: IconName; look: string }> = {
  ok: { icon: "tick", look: "completed" },
  warn: { icon: "clock", look: "waiting" },
  fail: { icon: "cross", look: "failed" },
};

/** How well something is: always sign, word and colour. */
export function LevelChip({ level, word }: { level: Level; word?: Word }): JSX.Element {
  return (
    <span class={`chip state-${levels[level].look}`}>
      <Icon name={levels[level].icon} />
      {t(word ?? `health.${level}`)}
    </span>
  );
}
