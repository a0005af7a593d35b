import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { title } from "../app.ts";
import { Search } from "../parts/search.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { go, type Route, type SwarmTab, swarmTabs } from "../route.ts";
import { t } from "../words.ts";
import { Agents } from "./swarm/agents.tsx";
import { Providers } from "./swarm/providers.tsx";
import { Tasks } from "./swarm/tasks.tsx";
import { ToolPage } from "./swarm/tool.tsx";
import { Tools } from "./swarm/tools.tsx";

type Place = Extract<Route, { room: "swarm" }>;

/** The agents, providers, tools and tasks of the swarm. */
export function Swarm({ at }: { at: Place }): JSX.Element {
  const [filter, setFilter] = useState("");
  const name = at.tool?.name ?? t(`swarm.${at.tab}`);
  useEffect(() => {
    title.value = `${name} · ${t("swarm.title")}`;
  }, [name]);
  return (
    <section class="installation swarm" aria-label={t("swarm.title")}>
      <header class="head">
        <div class="line">
          <h1>{t("swarm.title")}</h1>
        </div>
        <div class="line">
          <Tabs
            label={t("swarm.tabs")}
            all={swarmTabs.map((id) => ({ id, text: t(`swarm.${id}`) }))}
            chosen={at.tab}
            choose={(tab) => go({ room: "swarm", tab }, "replace")}
          />
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <div class="page" id="view" role="tabpanel" tabIndex={0} aria-label={t(`swarm.${at.tab}`)}>
        {at.tool ? (
          <ToolPage key={`${at.tool.kind} ${at.tool.provider} ${at.tool.name}`} at={at.tool} />
        ) : (
          <>
            <div class="filters">
              <Search label={t("swarm.filter")} value={filter} change={setFilter}>
                {null}
              </Search>
            </div>
            <Tab tab={at.tab} filter={filter.toLowerCase()} clear={() => setFilter("")} />
          </>
        )}
      </div>
    </section>
  );
}

function Tab(p: { tab: SwarmTab; filter: string; clear: () => void }): JSX.Element {
  switch (p.tab) {
    case "agents":
      return <Agents {...p} />;
    case "providers":
      return <Providers {...p} />;
    case "tools":
      return <Tools {...p} />;
    case "tasks":
      return <Tasks {...p} />;
  }
}
