// What users would install: contents, types and exports of the packages that "npm pack" makes.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

/** A program that loads all that it is told to, both as ES modules and as CommonJS, and compares what it gets. */
const loader = `
const { deepStrictEqual } = require("node:assert");
(async () => {
  for (const name of process.argv.slice(2)) {
    const names = (module) => Object.keys(module).filter((k) => !["default", "module.exports", "__esModule"].includes(k)).sort();
    deepStrictEqual(names(require(name)), names(await import(name)), name);
  }
})();`;

/** Installs packed files into a folder, beside what they need of others, and loads each of their parts. */
function load(packs) {
  const modules = join(folder, "node_modules");
  const link = (name, target) => {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(target, join(modules, name));
  };
  const peers = new Set(packs.flatMap(({ manifest }) => Object.keys(manifest.peerDependencies)));
  for (const peer of peers) if (!peer.startsWith("@waggle-dev/")) link(peer, installed(peer));
  for (const { manifest, file } of packs) {
    const target = join(modules, manifest.name);
    mkdirSync(target, { recursive: true });
    run("tar", "-xzf", file, "-C", target, "--strip-components=1");
  }
  writeFileSync(join(folder, "load.cjs"), loader);
  const parts = packs
    .flatMap(({ manifest }) => Object.keys(manifest.exports).map((e) => manifest.name + e.slice(1)))
    .filter((part) => !part.endsWith(".json") && part !== "@waggle-dev/copilotkit/react"); // it imports styles, for bundlers
  run("node", join(folder, "load.cjs"), ...parts);
  check(true, `${parts.length} parts can be imported and required`);
}

/** The folder of an installed package. */
function installed(name) {
  for (const at of [root, join(root, "../..")]) {
    const path = join(at, "node_modules", name);
    if (existsSync(path)) return path;
  }
  throw new Error(`${name} is not installed`);
}

const packs = [];
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
    packs.push({ manifest, file: join(folder, pack.filename) });
  }
  load(packs);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
