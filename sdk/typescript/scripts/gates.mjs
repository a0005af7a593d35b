// What users would install: contents, types and exports of the packages that "npm pack" makes.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const license = readFileSync(join(root, "../../LICENSE"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "waggle-pack-"));
const run = (command, ...args) => execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
let failed = 0;
const check = (ok, text) => {
  console.log(`${ok ? "ok  " : "FAIL"}  ${text}`);
  if (!ok) failed++;
};

try {
  for (const name of ["client", "react", "copilotkit", "ai-sdk"]) {
    const [pack] = JSON.parse(run("npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder, "-w", name));
    const files = pack.files.map((f) => f.path);
    const manifest = JSON.parse(readFileSync(join(root, name, "package.json"), "utf8"));
    const wanted = Object.values(manifest.exports)
      .flatMap((e) => (typeof e === "string" ? [e] : Object.values(e).flatMap((c) => Object.values(c))))
      .map((p) => p.slice(2));
    const missing = ["LICENSE", "README.md", ...wanted].filter((f) => !files.includes(f));
    const strange = files.filter(
      (f) => !/^(dist\/[\w./-]+\.(js|d\.ts)|dist\/cjs\/package\.json|package\.json|LICENSE|README\.md)$/.test(f),
    );
    check(missing.length === 0, `${name}: what package.json promises is packed${missing.length ? `, but for ${missing}` : ""}`);
    check(
      strange.length === 0,
      `${name}: nothing else is packed${strange.length ? `, but ${strange}` : ""} (${files.length} files, ${pack.size} bytes)`,
    );
    const maps = files.filter((f) => f.endsWith(".js") && readFileSync(join(root, name, f), "utf8").includes("sourceMappingURL"));
    check(maps.length === 0, `${name}: no source map is named that is not packed${maps.length ? `, but in ${maps}` : ""}`);
    check(readFileSync(join(root, name, "LICENSE"), "utf8") === license, `${name}: the license is that of the repository`);
    check(Object.keys(manifest.dependencies ?? {}).length === 0, `${name}: no dependencies at run time`);
    run("npx", "publint", "--strict", name);
    check(true, `${name}: publint --strict`);
    run("npx", "attw", join(folder, pack.filename), "--profile", "node16", "--no-emoji");
    check(true, `${name}: attw`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
