import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Wait } from "../fold/team.ts";
import type { MemberRow } from "../log/protocol.ts";
import { t, type Word } from "../words.ts";
import { StateChip, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { Rows } from "./rows.tsx";

const height = 52;
/** So many of the things that a member waits for are in its row. */
const mostWaits = 3;

/** A row of the tree: the team itself comes first. */
interface Node {
  row: MemberRow | undefined;
  level: number;
  /** Of a team: whether its members are shown. */
  open: boolean | undefined;
}

/** The members of a team as a tree, each with its state and what it waits for. */
export function MemberTree(p: {
  name: string;
  state: string;
  rows: readonly MemberRow[];
  /** The path of the member that is shown; empty: the whole team. */
  chosen: string;
  choose: (route: string) => void;
  /** A link to what a member waits for. */
  link: (route: string, w: Wait) => JSX.Element;
}): JSX.Element {
  const [shut, setShut] = useState<ReadonlySet<string>>(new Set());
  const nodes = useMemo(() => visible(p.rows, shut), [p.rows, shut]);
  const find = (route: string) => nodes.findIndex((n) => (n.row?.route ?? "") === route);
  const [over, setOver] = useState(-1);
  useEffect(() => setOver(-1), [p.chosen]);
  const picked = over >= 0 ? Math.min(over, nodes.length - 1) : find(p.chosen);
  const fold = (route: string, to: boolean) => {
    const next = new Set(shut);
    if (to) next.add(route);
    else next.delete(route);
    setShut(next);
  };
  const turn = (i: number, to: "open" | "shut") => {
    const { row, open } = nodes[i] as Node;
    if (row && open === (to === "shut")) fold(row.route, to === "shut");
    else if (to === "shut" && row) setOver(find(row.route.slice(0, Math.max(0, row.route.lastIndexOf("/")))));
    else if (open) setOver(i + 1);
  };
  return (
    <div class="members">
      <Rows
        rows={nodes}
        height={height}
        label={t("team.members")}
        picked={picked}
        pick={setOver}
        open={(i) => p.choose(nodes[i]?.row?.route ?? "")}
        level={({ level, open }) => ({ level, expanded: open })}
        turn={turn}
        row={({ row, level, open }) => (
          <div
            class={(row?.route ?? "") === p.chosen ? "member chosen" : "member"}
            style={{ paddingInlineStart: `${(level - 1) * 18 + 12}px` }}
          >
            <Icon name={!row || row.kind === "team" ? "team" : "person"} />
            <b>
              <Text>{row ? row.name : p.name || t("team.whole")}</Text>
            </b>
            <StateChip state={row ? stateOf(row.status) : p.state} small />
            {row && open !== undefined && (
              <button
                type="button"
                class={open ? "quiet fold" : "quiet fold shut"}
                tabIndex={-1}
                aria-label={t(open ? "team.fold" : "team.unfold", { name: row.name })}
                onClick={() => fold(row.route, open)}
              >
                <Icon name="down" />
              </button>
            )}
            <small>{row ? <About row={row} link={p.link} /> : t("team.whole")}</small>
          </div>
        )}
      />
    </div>
  );
}

function About({ row, link }: { row: MemberRow; link: (route: string, w: Wait) => JSX.Element }): JSX.Element {
  if (row.waits.length === 0) return <Text>{row.role}</Text>;
  const more = row.waits.length - mostWaits;
  return (
    <span class="waits">
      {t("team.waits")}{" "}
      {row.waits.slice(0, mostWaits).map((w, i) => (
        <>
          {i > 0 && ", "}
          {link(row.route, w)}
        </>
      ))}
      {more > 0 && ` ${t("team.waits.more", { n: more })}`}
    </span>
  );
}

/** What people are waited for; empty: that is not known. */
export const waitWord = (w: Extract<Wait, { for: "people" }>): string => w.tool || (w.scope in scopes ? t(scopes[w.scope] as Word) : "");

/** What a wait is called. */
export function waitText(w: Wait, names: (route: string) => string): string {
  if (w.for === "member") return t("team.waits.member", { name: names(w.route), task: w.task });
  const what = waitWord(w);
  return what === "" ? t("team.waits.people") : t("team.waits.for", { what });
}

const scopes: Record<string, Word> = { plan: "talk.plan", budget: "team.waits.budget", agent: "team.waits.answer" };

/** The rows of which no team above them is shut. */
function visible(rows: readonly MemberRow[], shut: ReadonlySet<string>): Node[] {
  const nodes: Node[] = [{ row: undefined, level: 1, open: rows.length > 0 ? true : undefined }];
  let hidden = "";
  for (const row of rows) {
    if (hidden !== "" && row.route.startsWith(hidden)) continue;
    hidden = "";
    const open = row.kind === "team" ? !shut.has(row.route) : undefined;
    nodes.push({ row, level: row.route.split("/").length + 1, open });
    if (open === false) hidden = `${row.route}/`;
  }
  return nodes;
}

/** A word of the log for the state of a member, a task or a team, as a chip shows it. */
export function stateOf(status: string): string {
  switch (status.toLowerCase()) {
    case "":
    case "idle":
    case "uninitialized":
    case "not_started":
      return "idle";
    case "starting":
    case "running":
    case "bootstrapping":
    case "processing":
    case "in_progress":
    case "processing_user_input":
    case "awaiting_llm_response":
    case "analyzing_llm_response":
    case "executing_tool":
    case "tool_denied":
    case "processing_tool_result":
      return "running";
    case "awaiting_tool_approval":
    case "waiting":
      return "waiting";
    case "error":
      return "failed";
    case "shutting_down":
    case "shutdown_complete":
      return "closed";
  }
  return status.toLowerCase();
}
