import type { DeadLetter, QueueList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { me, title } from "../app.ts";
import { Pages, Reading } from "../model/installation.ts";
import { Skeleton, Text } from "../parts/basics.tsx";
import { later } from "../parts/later.tsx";
import { Refused } from "../parts/reading.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { go, type Route } from "../route.ts";
import { installationTab, openTabs, shownTabs } from "../turns.ts";
import { t } from "../words.ts";
import { Audit } from "./installation/audit.tsx";
import { Config } from "./installation/config.tsx";
import { Dead } from "./installation/dead.tsx";
import { Health } from "./installation/health.tsx";
import { Queues } from "./installation/queues.tsx";
import { Quotas } from "./installation/quotas.tsx";

const Connections = later(() => import("./installation/connections.tsx").then((m) => m.Connections));
const Rates = later(() => import("./installation/rates.tsx").then((m) => m.Rates));
const Versions = later(() => import("./installation/versions.tsx").then((m) => m.Versions));

type Place = Extract<Route, { room: "installation" }>;

/** The state of the installation, and what operators do about it. */
export function Installation({ at }: { at: Place }): JSX.Element {
  useEffect(() => {
    title.value = `${t(`installation.${at.tab}`)} · ${t("installation.title")}`;
  }, [at.tab]);
  const who = me.value;
  const operates = who?.may.includes("operate") ?? false;
  const queues = useMemo(() => (operates ? new Reading<QueueList>("/api/v1/queues") : undefined), [operates]);
  const letters = useMemo(
    () => (operates ? new Pages<DeadLetter>("/api/v1/dead-letters?limit=50", "dead_letters") : undefined),
    [operates],
  );
  useEffect(() => () => [queues, letters].forEach((r) => void r?.close()), [queues, letters]);
  if (!who) return <Skeleton />;
  const all = shownTabs().map((id) => ({
    id,
    text: t(`installation.${id}`),
    ...(id === "dead" ? { badge: letters?.value.value?.total } : {}),
  }));
  return (
    <section class="installation" aria-label={t("installation.title")}>
      <header class="head">
        <div class="line">
          <h1>{t("installation.title")}</h1>
          <span class="about">
            <Text>{t("installation.you", { subject: who.subject, tenant: who.tenant, roles: who.roles.join(", ") })}</Text>
          </span>
        </div>
        <div class="line">
          <Tabs label={t("installation.tabs")} all={all} chosen={at.tab} choose={(tab) => go(installationTab(tab), "replace")} />
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <div class="page" id="view" role="tabpanel" tabIndex={0} aria-label={t(`installation.${at.tab}`)}>
        {!operates && !openTabs.includes(at.tab) ? <Refused /> : <Tab at={at} queues={queues} letters={letters} />}
      </div>
    </section>
  );
}

function Tab(p: { at: Place; queues: Reading<QueueList> | undefined; letters: Pages<DeadLetter> | undefined }): JSX.Element {
  const { at, queues, letters } = p;
  switch (at.tab) {
    case "health":
      return <Health queues={queues} letters={letters} />;
    case "queues":
      return queues ? <Queues queues={queues} /> : <Refused />;
    case "connections":
      return <Connections text={at.entity} lagging={at.lagging === true} />;
    case "dead":
      return letters ? <Dead letters={letters} /> : <Refused />;
    case "rates":
      return <Rates />;
    case "versions":
      return <Versions role={at.role} instance={at.instance} queues={queues} />;
    case "quotas":
      return <Quotas />;
    case "audit":
      return <Audit at={at} />;
    case "config":
      return <Config />;
  }
}
