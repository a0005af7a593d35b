import type { SessionSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, nextTheme, nextTongue, nextZone, reason, say } from "../app.ts";
import { choose, chosen, compareChosen } from "../model/compare.ts";
import { begin } from "../rooms/session.tsx";
import { go, room, route } from "../route.ts";
import { t, type Word } from "../words.ts";
import { Dialog, Text } from "./basics.tsx";

interface Choice {
  id: string;
  text: string;
  run: () => void;
}

/** A field that goes anywhere: rooms, sessions, settings, or a question to the model. */
export function Palette({ close }: { close: () => void }): JSX.Element {
  const [q, setQ] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<readonly SessionSummary[]>([]);
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
  const all = choices(q, found);
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
          </div>
        ))}
        {all.length === 0 && <p class="none">{t("palette.none")}</p>}
      </div>
    </Dialog>
  );
}

/** The name of a setting: what stands before its value. */
const before = (key: Word) => t(key).split(/[:：]/)[0] ?? "";

/** What can be compared now. */
function comparisons(): Choice[] {
  const session = route.value.room === "sessions" ? route.value.id : undefined;
  const all: Choice[] = [];
  if (chosen.value.length === 2) all.push({ id: "compare", text: t("compare.two"), run: () => void compareChosen(undefined) });
  if (session) all.push({ id: "compare this", text: t("compare.this"), run: () => void (compareChosen(session) || choose(session)) });
  return all;
}

const places = ["playground", "sessions", "questions", "teams", "swarm", "installation"] as const;

function choices(q: string, found: readonly SessionSummary[]): Choice[] {
  const word = q.trim().toLowerCase();
  const all: Choice[] = [
    ...places.map((p) => ({ id: p, text: t(`nav.${p}` as Word), run: () => go(room(p)) })),
    { id: "theme", text: before("theme.auto"), run: nextTheme },
    { id: "zone", text: before("zone.local"), run: nextZone },
    { id: "language", text: before("language.auto"), run: nextTongue },
    ...comparisons(),
  ].filter((c) => c.text.toLowerCase().includes(word));
  for (const s of found)
    all.push({
      id: s.session_id,
      text: s.question || t("sessions.untitled"),
      run: () => go({ room: "sessions", id: s.session_id, view: "talk", q: "", state: "" }),
    });
  if (/^[0-9a-zA-Z._-]{8,}$/.test(q.trim()) && found.length === 0) {
    const id = q.trim();
    all.push({ id: "id", text: t("palette.id", { id }), run: () => go({ room: "sessions", id, view: "talk", q: "", state: "" }) });
  }
  if (word !== "")
    all.push({
      id: "ask",
      text: t("palette.ask", { text: q.trim() }),
      run: () => void begin({ content: q.trim(), mode: "chat", confirm: false }, () => {}).catch((e) => say(reason(e))),
    });
  return all;
}
