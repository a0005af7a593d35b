// Writes the results of the tests as "go test -json" does, into the file WAGGLE_TEST_RESULTS: scripts/testsum of the
// repository counts them with all others.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export default class Reporter {
  onTestRunEnd(modules) {
    const file = process.env.WAGGLE_TEST_RESULTS;
    if (!file) return;
    const lines = [];
    for (const module of modules) {
      const Package = module.relativeModuleId;
      const put = (event) => lines.push(JSON.stringify({ Package, ...event }));
      for (const test of module.children.allTests()) {
        const Test = test.fullName;
        const { state, errors } = test.result();
        put({ Action: "run", Test });
        for (const e of errors ?? []) put({ Action: "output", Test, Output: `${e.stack ?? e.message}\n` });
        put({ Action: { passed: "pass", failed: "fail" }[state] ?? "skip", Test });
      }
      for (const e of module.errors()) put({ Action: "output", Output: `${e.stack ?? e.message}\n` });
      put({ Action: module.ok() ? "pass" : "fail", Elapsed: module.diagnostic().duration / 1000 });
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.map((l) => `${l}\n`).join(""));
  }
}
