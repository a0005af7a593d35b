import type { SettingList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Reading } from "../../model/installation.ts";
import { Face, Id, Text } from "../../parts/basics.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Search } from "../../parts/search.tsx";
import { Table } from "../../parts/table.tsx";
import { t, type Word } from "../../words.ts";

/** The configuration in force, and where each setting comes from. */
export function Config(): JSX.Element {
  const config = useMemo(() => new Reading<SettingList>("/api/v1/config"), []);
  useEffect(() => () => config.close(), [config]);
  const [q, setQ] = useState("");
  const [changed, setChanged] = useState(false);
  const all = config.value.value?.settings;
  const rows = all?.filter((s) => (!changed || s.source !== "default") && `${s.name} ${s.value}`.toLowerCase().includes(q.toLowerCase()));
  return (
    <Shown of={config} value={all} rows={12}>
      <p class="about">
        {t("config.about")} {t("config.gateway")} <Id value={config.value.value?.gateway ?? ""} />
      </p>
      <div class="filters">
        <Search label={t("config.search")} value={q} change={setQ}>
          <label class="check">
            <input type="checkbox" checked={changed} onChange={(e) => setChanged(e.currentTarget.checked)} />
            {t("config.changed")}
          </label>
        </Search>
      </div>
      {rows?.length === 0 ? (
        <Face title={t("face.nothing")} action={{ text: t("face.clear"), go: () => [setQ(""), setChanged(false)] }} />
      ) : (
        <Table title={t("installation.config")} quiet look="config" columns={["config.name", "config.value", "config.source"]}>
          {rows?.map((s) => (
            <tr key={s.name}>
              <th scope="row">
                <code>{s.name}</code>
              </th>
              <td class="value">{s.value === "" ? <small>{t("config.none")}</small> : <Text most={400}>{s.value}</Text>}</td>
              <td>
                <span class={s.source === "default" ? "" : "chip small"}>{t(`config.${s.source}` as Word)}</span>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Shown>
  );
}
