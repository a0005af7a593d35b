import type { AuditRecord } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Pages } from "../../model/installation.ts";
import { Face, Text, Time } from "../../parts/basics.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { type AuditFilter, go, type Route, room } from "../../route.ts";
import { t, type Word } from "../../words.ts";
import { Verify } from "./verify.tsx";

const actions = [
  "connection-accepted",
  "connection-refused",
  "connection-closed",
  "authentication-failed",
  "command",
  "decision",
  "tool-call",
  "export",
  "import",
  "quota-refused",
  "deletion",
  "api-call",
] as const;

/** Looks of outcomes that are no failures. */
const states: Record<string, string> = { approve: "state-completed", answer: "state-completed", sent: "" };

/** The audit records of the tenant, the newest first. */
export function Audit({ at }: { at: AuditFilter }): JSX.Element {
  const { principal, action, entity } = at;
  const records = useMemo(() => {
    const q = new URLSearchParams({ limit: "100" });
    for (const [name, value] of Object.entries({ principal, action, entity })) if (value) q.set(name, value);
    return new Pages<AuditRecord>(`/api/v1/audit?${q}`, "records");
  }, [principal, action, entity]);
  useEffect(() => () => records.close(), [records]);
  const show = (f: Partial<AuditFilter>) =>
    go({ ...room("installation"), tab: "audit", principal, action, entity, ...f } as Route, "replace");
  const rows = records.rows.value;
  const older = records.next.value !== undefined;
  const filtered = principal + action + entity !== "";
  return (
    <>
      <div class="filters">
        <Field label={t("audit.principal")} value={principal} change={(v) => show({ principal: v })} search />
        <select aria-label={t("audit.action")} value={action} onChange={(e) => show({ action: e.currentTarget.value })}>
          <option value="">{t("audit.any")}</option>
          {actions.map((a) => (
            <option key={a} value={a}>
              {t(`audit.${a}` as Word)}
            </option>
          ))}
        </select>
        <Field label={t("audit.entity")} value={entity} change={(v) => show({ entity: v })} />
      </div>
      <Verify />
      <Shown of={records} value={rows} rows={10}>
        {rows?.length === 0 ? (
          filtered ? (
            <Face
              title={t(older ? "audit.further" : "face.nothing")}
              action={{ text: t("face.clear"), go: () => show({ principal: "", action: "", entity: "" }) }}
            />
          ) : (
            <Face title={t("audit.empty")} text={t("audit.empty.text")} />
          )
        ) : (
          <Table
            title={t("installation.audit")}
            quiet
            look="audit"
            columns={["audit.time", "audit.action", "audit.principal", "audit.what", "audit.outcome"]}
          >
            {rows?.map((r) => (
              <Row key={r.seq} r={r} />
            ))}
          </Table>
        )}
        {older && (
          <button type="button" class="more" onClick={() => void records.more()}>
            {t("audit.more")}
          </button>
        )}
      </Shown>
    </>
  );
}

/** A field that filters after a moment. */
function Field(p: { label: string; value: string; change: (text: string) => void; search?: boolean }): JSX.Element {
  const [text, setText] = useState(p.value);
  useEffect(() => setText(p.value), [p.value]);
  useEffect(() => {
    if (text === p.value) return;
    const timer = setTimeout(() => p.change(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      type="search"
      data-search={p.search}
      aria-label={p.label}
      placeholder={p.label}
      value={text}
      onInput={(e) => setText(e.currentTarget.value)}
    />
  );
}

function Row({ r }: { r: AuditRecord }): JSX.Element {
  const known = (actions as readonly string[]).includes(r.action);
  return (
    <tr>
      <td>
        <Time at={r.time} />
      </td>
      <th scope="row">{known ? t(`audit.${r.action}` as Word) : <Text>{r.action}</Text>}</th>
      <td>
        <Text>{r.principal ?? r.remote ?? ""}</Text>
      </td>
      <td class="value">
        <Text most={300}>{whatOf(r)}</Text>
      </td>
      <td>
        {r.outcome !== "done" && (
          <span class={`chip small ${states[r.outcome] ?? "state-failed"}`}>
            <Text>{r.outcome}</Text>
          </span>
        )}
        {r.code && (
          <small>
            <Text>{r.code}</Text>
          </small>
        )}
      </td>
    </tr>
  );
}

/** What a record is about, in short. */
function whatOf(r: AuditRecord): string {
  const parts = [r.service, r.verb, r.tool && `${r.server ?? ""}/${r.tool}`, r.entity ?? r.dialect, r.resource, r.input];
  if (r.count && r.count > 1) parts.push(`× ${r.count}`);
  if (r.close_code) parts.push(String(r.close_code));
  return parts.filter((x) => x).join(" ");
}
