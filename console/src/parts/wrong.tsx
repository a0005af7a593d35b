import type { LeftOutTool } from "@waggle-dev/client";
import type { JSX } from "preact";
import { t } from "../words.ts";
import { Text } from "./basics.tsx";

/** Why a tool server is down, and which of its tools are not on offer. */
export function Wrong(p: { trouble: string | undefined; left: readonly LeftOutTool[] | undefined }): JSX.Element {
  const lines = [
    ...(p.trouble ?? "").split("\n"),
    ...(p.left ?? []).map((l) => t("health.left", { tool: l.tool || t("health.left.some"), why: l.why })),
  ].filter((line) => line.trim() !== "");
  return (
    <>
      {lines.map((line, i) => (
        <small key={i}>
          <Text most={400}>{line}</Text>
        </small>
      ))}
    </>
  );
}
