import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

// Each example is a project of its own, of the same releases as here.

const examples = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(join(examples, path), "utf8"));
const pins: Record<string, string> = read("package.json").dependencies;
const version: string = read("../sdk/typescript/client/package.json").version;

/** The packages that the sources of a folder import. */
function imported(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (f) => /\.(ts|tsx|js)$/.test(f) && !/(^|\/)(dist|node_modules)\//.test(f),
  );
  const texts = files.map((f) => readFileSync(join(folder, f), "utf8")).join("\n");
  const names = [...texts.matchAll(/(?:from|import) "((?:@[\w-]+\/)?[a-z][\w-]*)(?:\/[^"]*)?"/g)].map((m) => m[1] as string);
  return [...new Set(names)].filter((n) => n !== "node");
}

describe.each(["react-chat", "assistant-ui", "ai-sdk", "copilotkit"])("%s", (name) => {
  const { dependencies } = read(`${name}/package.json`) as { dependencies: Record<string, string> };
  const { packages } = read(`${name}/package-lock.json`) as {
    packages: Record<string, { dependencies?: object; version?: string; inBundle?: boolean; integrity?: string }>;
  };

  test("has what it imports, in the releases of all", () => {
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(imported(join(examples, name)).filter((n) => !n.startsWith("node:"))));
    for (const [pack, release] of Object.entries(dependencies)) {
      const own = pack.startsWith("@waggle-dev/");
      expect(release, pack).toBe(own ? `file:../packs/${pack.slice(1).replace("/", "-")}-${version}.tgz` : pins[pack]);
    }
  });

  test("has a lock that is current and holds for any build of the SDK", () => {
    expect(packages[""]?.dependencies).toEqual(dependencies);
    for (const [path, p] of Object.entries(packages)) {
      if (path === "" || p.inBundle) continue;
      const own = path.startsWith("node_modules/@waggle-dev/");
      expect(p.integrity === undefined, path).toBe(own);
      if (own) expect(p.version).toBe(version);
    }
    for (const [pack, release] of Object.entries(dependencies)) {
      if (!release.startsWith("file:")) expect(packages[`node_modules/${pack}`]?.version, pack).toBe(release);
    }
  });
});
