import type { ToolPage, ToolSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Reading } from "../../model/installation.ts";
import { List } from "../../model/lists.ts";
import { Text } from "../../parts/basics.tsx";
import { LevelChip } from "../../parts/level.tsx";
import { Link } from "../../parts/link.tsx";
import { Table } from "../../parts/table.tsx";
import { Wrong } from "../../parts/wrong.tsx";
import { t } from "../../words.ts";
import { type Filtered, has, Listed } from "./listed.tsx";

const key = (x: ToolSummary) => `${x.kind} ${x.provider} ${x.name}`;

/** The tools of all providers. */
export function Tools(p: Filtered): JSX.Element {
  const list = useMemo(() => new List<ToolSummary>("tools", "/api/v1/tools?limit=200", key, (a, b) => (key(a) < key(b) ? -1 : 1)), []);
  return (
    <>
      <Missing />
      <Listed of={list} what="tools" {...p} fits={(x) => has(p.filter, x.name, x.title, x.provider_name, x.description)}>
        {(rows) => (
          <Table title={t("swarm.tools")} quiet look="tools" columns={["swarm.name", "swarm.provider", "swarm.about", "swarm.kind"]}>
            {rows.map((x) => (
              <tr key={key(x)}>
                <th scope="row">
                  <Link to={{ room: "swarm", tab: "tools", tool: { provider: x.provider, name: x.name, kind: x.kind, call: "" } }}>
                    <Text>{x.title || x.name}</Text>
                  </Link>
                  {x.title && x.title !== x.name && (
                    <small>
                      <Text>{x.name}</Text>
                    </small>
                  )}
                </th>
                <td data-label={t("swarm.provider")}>
                  <Text>{x.provider_name}</Text>
                </td>
                <td data-label={t("swarm.about")}>
                  <Text most={200}>{x.description ?? ""}</Text>
                </td>
                <td data-label={t("swarm.kind")}>
                  <Marks tool={x} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Listed>
    </>
  );
}

/** The MCP servers that are down, or have tools that are not on offer. */
function Missing(): JSX.Element | null {
  const page = useMemo(() => new Reading<ToolPage>("/api/v1/tools?kind=mcp&limit=1"), []);
  useEffect(() => () => page.close(), [page]);
  const servers = page.value.value?.servers ?? [];
  if (servers.length === 0) return null;
  return (
    <Table look="health" title={t("health.tools")} columns={["health.name", "health.state"]}>
      {servers.map((x) => (
        <tr key={x.provider}>
          <th scope="row">
            <Text>{x.provider}</Text>
          </th>
          <td>
            <LevelChip level={x.status === "active" ? "warn" : "fail"} />
            <Wrong trouble={x.trouble} left={x.left_out} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** What a tool does to the world, and whether people are asked about it. */
export function Marks({ tool }: { tool: ToolSummary }): JSX.Element {
  return (
    <span class="words">
      <span class={tool.read_only ? "chip small state-completed" : "chip small state-waiting"}>
        {t(tool.read_only ? "tool.reads" : "tool.writes")}
      </span>
      {!tool.read_only && <span class="chip small">{t(tool.idempotent ? "tool.idempotent" : "tool.once")}</span>}
      {tool.asks && <span class="chip small">{t("tool.asks")}</span>}
      {tool.untrusted && <span class="chip small">{t("tool.untrusted")}</span>}
    </span>
  );
}
