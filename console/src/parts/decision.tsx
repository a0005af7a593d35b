import type { Decision } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { t, type Word } from "../words.ts";
import { Text, Time } from "./basics.tsx";
import { Icon, type IconName } from "./icons.tsx";

const looks: Record<string, { word: Word; icon: IconName; look: string }> = {
  approve: { word: "decision.approve", icon: "tick", look: "completed" },
  modify: { word: "decision.modify", icon: "tick", look: "completed" },
  reject: { word: "decision.reject", icon: "cross", look: "failed" },
  answer: { word: "decision.answer", icon: "tick", look: "completed" },
  expired: { word: "decision.expired", icon: "clock", look: "cancelled" },
  withdrawn: { word: "decision.withdrawn", icon: "slash", look: "cancelled" },
};

/** Who decided what, when, and why: it stays in the conversation. */
export function Decided({ of }: { of: Decision }): JSX.Element {
  const { word, icon, look } = looks[of.code] ?? { word: "decision.answer" as const, icon: "tick" as const, look: "completed" };
  return (
    <article class={`item decision state-${look}`}>
      <p>
        <Icon name={icon} />
        <span>
          <Text most={200}>{t(word, { who: of.by || t("decision.somebody") })}</Text>
          {", "}
          <Time at={of.at} />
        </span>
        {of.name ? (
          <code class="tool">
            <Text>{of.name}</Text>
          </code>
        ) : (
          of.scope in scopes && <span class="scope">{t(scopes[of.scope] as Word)}</span>
        )}
      </p>
      {of.text !== "" && (
        <blockquote>
          <Text most={2000}>{of.text}</Text>
        </blockquote>
      )}
    </article>
  );
}

const scopes: Record<string, Word> = { plan: "talk.plan", budget: "decision.budget" };
