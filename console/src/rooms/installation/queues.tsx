import type { QueueList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { now, span } from "../../app.ts";
import type { Reading } from "../../model/installation.ts";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";

/** The commands that wait for services. */
export function Queues({ queues }: { queues: Reading<QueueList> }): JSX.Element {
  const q = queues.value.value;
  return (
    <Shown of={queues} value={q} rows={6}>
      {q && (
        <>
          <p class="about">
            {q.oldest ? t("queues.oldest", { age: span(Math.max(0, now.value - Date.parse(q.oldest))) }) : t("queues.empty")}
          </p>
          <Table
            title={t("installation.queues")}
            quiet
            look="queues"
            columns={["queues.service", "queues.waiting", "queues.out", "queues.redelivered"]}
          >
            {(q.queues ?? []).map((x) => (
              <tr key={x.service}>
                <th scope="row">{x.service}</th>
                <td data-label={t("queues.waiting")}>{x.waiting}</td>
                <td data-label={t("queues.out")}>{x.out}</td>
                <td data-label={t("queues.redelivered")}>{x.redelivered}</td>
              </tr>
            ))}
          </Table>
          <p class="about">{t("queues.about")}</p>
        </>
      )}
    </Shown>
  );
}
