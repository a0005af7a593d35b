import type { TeamDefinition } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { client, epoch, mayAct, reason, say, title } from "../app.ts";
import { startTeam } from "../model/act.ts";
import { teamList } from "../model/lists.ts";
import { Face, Failure, Skeleton, StateChip, Text, Time } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { stateOf } from "../parts/members.tsx";
import { go } from "../route.ts";
import { t } from "../words.ts";

/** A team that works with every model, the built-in one included. Its writer asks before it writes. */
export const example: TeamDefinition = {
  name: "pair",
  coordinator: "Lead",
  members: [
    { name: "Lead", role: "talks to people and gives the work to Writer" },
    { name: "Writer", role: "writes files", tools: ["workspace/*"] },
  ],
};

/** All teams of the tenant, and a way to start one. */
export function Teams(): JSX.Element {
  const list = useMemo(() => teamList(), [epoch.value]);
  const [named, setNamed] = useState<readonly string[]>([]);
  useEffect(() => () => list.close(), [list]);
  useEffect(() => {
    title.value = t("teams.title");
    client.call<{ named?: string[] }>("GET", "/api/v1/teams?limit=1").then(
      (page) => setNamed(page.named ?? []),
      () => {},
    );
  }, [list]);
  const start = (team: TeamDefinition | { named: string }) => {
    startTeam(team).then(
      (id) => go({ room: "teams", id, view: "tree" }),
      (error) => say(reason(error)),
    );
  };
  const rows = list.rows.value;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="page" tabIndex={0} aria-label={t("teams.title")}>
      <h1>{t("teams.title")}</h1>
      {mayAct.value && (
        <div class="actions">
          <button type="button" onClick={() => start(example)}>
            <Icon name="team" />
            {t("teams.try")}
          </button>
          {named.map((n) => (
            <button key={n} type="button" onClick={() => start({ named: n })}>
              {t("teams.start", { name: n })}
            </button>
          ))}
        </div>
      )}
      {list.error.value && !rows ? (
        <Failure error={list.error.value} again={() => void list.read()} />
      ) : !rows ? (
        <Skeleton rows={3} />
      ) : rows.length === 0 ? (
        <Face title={t("teams.empty")} text={t("teams.empty.text")} />
      ) : (
        <ul class="teams">
          {rows.map((team) => (
            <li key={team.team_id}>
              <Link to={{ room: "teams", id: team.team_id, view: "tree" }}>
                <b>
                  <Text>{team.name}</Text>
                </b>
                <StateChip state={stateOf(team.closed ? "closed" : team.status)} small />
                <span>{t("teams.members", { n: (team.members ?? []).length })}</span>
                <Time at={team.created_at} />
              </Link>
            </li>
          ))}
        </ul>
      )}
      {list.more.value && (
        <button type="button" onClick={() => void list.next()}>
          {t("teams.more")}
        </button>
      )}
    </section>
  );
}
