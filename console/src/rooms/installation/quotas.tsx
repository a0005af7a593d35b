import type { Quota, QuotaList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { me, span } from "../../app.ts";
import { Reading } from "../../model/installation.ts";
import { Face, Text } from "../../parts/basics.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t, type Word } from "../../words.ts";

/** From this part of a limit on a quota is nearly used up. */
const full = 0.8;

const number = new Intl.NumberFormat("en");
const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumFractionDigits: 4 });

function amount(resource: string, n: number): string {
  if (resource === "cost_usd") return dollars.format(n);
  return resource === "time" ? span(n * 1000) : number.format(n);
}

/** How much of their limits the tenant and its principals use. */
export function Quotas(): JSX.Element {
  const quotas = useMemo(() => new Reading<QuotaList>("/api/v1/quotas"), []);
  useEffect(() => () => quotas.close(), [quotas]);
  const all = quotas.value.value?.quotas;
  return (
    <Shown of={quotas} value={all} rows={6}>
      {all?.length === 0 ? (
        <Face title={t("quotas.empty")} text={t("quotas.empty.text")} />
      ) : (
        <Table title={t("installation.quotas")} quiet look="quotas" columns={["quotas.what", "quotas.whose", "quotas.used"]}>
          {all?.map((q) => (
            <Row key={`${q.resource} ${q.scope} ${q.principal ?? ""}`} q={q} />
          ))}
        </Table>
      )}
    </Shown>
  );
}

function Row({ q }: { q: Quota }): JSX.Element {
  const part = q.limit > 0 ? Math.min(1, q.used / q.limit) : 0;
  const look = part >= 1 ? "over" : part >= full ? "full" : "";
  const whose = q.scope === "tenant" ? t("quotas.tenant") : q.principal === me.value?.subject ? t("quotas.you") : (q.principal ?? "");
  return (
    <tr>
      <th scope="row">
        {t(`quotas.${q.resource}` as Word)}
        {q.daily && <small>{t("quotas.daily")}</small>}
      </th>
      <td>
        <Text>{whose}</Text>
      </td>
      <td class="use">
        <span>
          {t("quotas.of", { used: amount(q.resource, q.used), limit: amount(q.resource, q.limit) })}
          {look && <b class="fault">{t(`quotas.${look}` as Word)}</b>}
        </span>
        <span class={`bar ${look}`} aria-hidden="true">
          <i style={{ inlineSize: `${part * 100}%` }} />
        </span>
      </td>
    </tr>
  );
}
