import type { SessionSummary, TeamView, ToolSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, mayAct, reason, say } from "../app.ts";
import { typedEarly } from "../keys.ts";
import { begin } from "../rooms/session.tsx";
import { go } from "../route.ts";
import { t } from "../words.ts";
import { Dialog, Text } from "./basics.tsx";
import { type Choice, commands } from "./commands.ts";

/** A field that goes anywhere and does what keys and buttons do: rooms, sessions, teams, tools, commands, or a question to the model. */
export function Palette({ close }: { close: () => void }): JSX.Element {
  const [q, setQ] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<readonly SessionSummary[]>([]);
  const [others, setOthers] = useState<readonly Choice[]>([]);
  useEffect(() => void named().then(setOthers), []);
  useEffect(() => setQ(typedEarly()), []); // after the dialog has taken the focus
  useEffect(() => {
    let over = false;
    const timer = setTimeout(async () => {
      const path = `/api/v1/sessions?limit=8${q ? `&q=${encodeURIComponent(q)}` : ""}`;
      const page = await client.call<{ sessions?: SessionSummary[] }>("GET", path).catch(() => ({ sessions: [] }));
      if (!over) setFound(page.sessions ?? []);
    }, 120);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [q]);
  const all = choices(q, found, others);
  const picked = Math.min(at, all.length - 1);
  const run = (c: Choice | undefined) => {
    if (!c) return;
    close();
    c.run();
  };
  return (
    <Dialog label={t("palette.open")} close={close} class="palette">
      <input
        type="text"
        role="combobox"
        aria-label={t("palette.label")}
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={picked >= 0 ? `choice-${picked}` : undefined}
        placeholder={t("palette.label")}
        value={q}
        onInput={(e) => {
          setQ(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(e) => {
          const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
          if (by) {
            e.preventDefault();
            setAt((picked + by + all.length) % Math.max(1, all.length));
          } else if (e.key === "Enter") {
            e.preventDefault();
            run(all[picked]);
          }
        }}
      />
      <div class="choices" id="palette-list" role="listbox" aria-label={t("palette.label")}>
        {all.map((c, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field has the focus and names its active choice
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          <div key={c.id} id={`choice-${i}`} role="option" aria-selected={i === picked} onClick={() => run(c)}>
            <Text most={100}>{c.text}</Text>
            {c.keys && (
              <span class="pressed">
                {c.keys.split(" ").map((k) => (
                  <kbd key={k}>{k}</kbd>
                ))}
              </span>
            )}
          </div>
        ))}
        {all.length === 0 && <p class="none">{t("palette.none")}</p>}
      </div>
    </Dialog>
  );
}

/** What others have named: teams, tools and agents. */
async function named(): Promise<Choice[]> {
  const get = <T,>(path: string, member: string) =>
    client.call<Record<string, T[] | undefined>>("GET", path).then(
      (page) => page[member] ?? [],
      () => [] as T[],
    );
  const [teams, tools, agents] = await Promise.all([
    get<TeamView>("/api/v1/teams?limit=50", "teams"),
    get<ToolSummary>("/api/v1/tools", "tools"),
    get<{ name: string; id: string }>("/api/v1/agents", "agents"),
  ]);
  return [
    ...teams.map((x) => ({
      id: `team ${x.team_id}`,
      text: `${t("nav.teams")}: ${x.name}`,
      run: () => go({ room: "teams", id: x.team_id, view: "tree" }),
    })),
    ...tools.map((x) => ({
      id: `tool ${x.kind} ${x.provider} ${x.name}`,
      text: `${t("swarm.tools")}: ${x.provider}/${x.name}`,
      run: () => go({ room: "swarm", tab: "tools", tool: { provider: x.provider, name: x.name, kind: x.kind, call: "" } }),
    })),
    ...agents.map((x) => ({
      id: `agent ${x.id}`,
      text: `${t("swarm.agents")}: ${x.name}`,
      run: () => go({ room: "swarm", tab: "agents" }),
    })),
  ];
}

/** So many of what others have named are offered at most. */
const mostNamed = 8;

function choices(q: string, found: readonly SessionSummary[], others: readonly Choice[]): Choice[] {
  const text = q.trim();
  const word = text.toLowerCase();
  const all = commands(q);
  if (word !== "") all.push(...others.filter((c) => c.text.toLowerCase().includes(word)).slice(0, mostNamed));
  for (const s of found)
    all.push({
      id: s.session_id,
      text: s.question || t("sessions.untitled"),
      run: () => go({ room: "sessions", id: s.session_id, view: "talk", q: "", state: "" }),
    });
  if (/^[0-9a-zA-Z._-]{8,}$/.test(text) && found.length === 0) {
    all.push({
      id: "id",
      text: t("palette.id", { id: text }),
      run: () => go({ room: "sessions", id: text, view: "talk", q: "", state: "" }),
    });
    all.push({ id: "task", text: t("palette.task", { id: text }), run: () => go({ room: "task", id: text, view: "work" }) });
  }
  if (word !== "" && mayAct.value)
    all.push({
      id: "ask",
      text: t("palette.ask", { text }),
      run: () => void begin({ content: text, mode: "chat", confirm: false }, () => {}).catch((e) => say(reason(e))),
    });
  return all;
}
