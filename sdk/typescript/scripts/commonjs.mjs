// Builds the packages a second time, as CommonJS, into dist/cjs: for programs whose modules are required.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const format = ["--module", "commonjs", "--moduleResolution", "bundler", "--verbatimModuleSyntax", "false", "--outDir"];

for (const name of ["client", "react", "copilotkit", "ai-sdk"]) {
  execFileSync("npx", ["tsc", "-p", name, ...format, `${name}/dist/cjs`], { cwd: root, stdio: "inherit" });
  writeFileSync(new URL(`../${name}/dist/cjs/package.json`, import.meta.url), '{ "type": "commonjs" }\n');
}
