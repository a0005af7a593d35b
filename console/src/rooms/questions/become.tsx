import type { JSX } from "preact";
import { plain } from "../../fold/text.ts";
import type { Result } from "../../model/inbox.ts";
import { Text } from "../../parts/basics.tsx";
import { Icon, type IconName } from "../../parts/icons.tsx";
import { t, type Word } from "../../words.ts";

const decisions = ["approve", "modify", "reject", "answer"] as const;

const looks: Record<string, { icon: IconName; look: string }> = {
  reject: { icon: "cross", look: "failed" },
  expired: { icon: "clock", look: "cancelled" },
};

/** An answer this much earlier is as good as at the same time: no clocks agree better. */
const least = 100;

/** What has become of a question, in a line. */
export function becameText(r: Result | undefined): string {
  const decision = decisions.find((d) => d === r?.decision);
  if (!r || !decision) return t(r?.decision === "expired" ? "result.expired" : "result.over");
  if (r.who === undefined) return t(`result.you.${decision}` as Word);
  const who = r.who ? plain(r.who) : t("question.somebody");
  if (r.ahead === undefined) return t(`result.other.${decision}` as Word, { who });
  return t(`result.before.${decision}` as Word, { who, time: (Math.max(least, r.ahead) / 1000).toFixed(1) });
}

/** The line on a card whose question is over: a person who has answered sees whether their answer counts. */
export function Become({ result }: { result: Result | undefined }): JSX.Element {
  const { icon, look } = looks[result?.decision ?? ""] ?? { icon: result ? "tick" : "slash", look: result ? "completed" : "cancelled" };
  const lost = result?.ahead !== undefined; // the answer of this page does not count
  return (
    <p class={`result state-${lost ? "waiting" : look}`} role="status">
      <Icon name={icon} />
      <Text most={200}>{becameText(result)}</Text>
    </p>
  );
}
