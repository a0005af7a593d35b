// After the build: the Markdown of every page beside it, llms.txt, and llms-full.txt with all pages.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { allPages, here } from "./pages.mjs";

const dist = join(here, ".vitepress/dist");
const write = (name, text) => {
  const to = join(dist, name);
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
};
const base = (process.env.WAGGLE_DOCS_ROOT ?? "/") + (process.env.WAGGLE_DOCS_FOLDER ?? "");
const read = (link) => readFileSync(join(here, `${link}.md`), "utf8");

const home = read("index");
write("index.md", home);
const [, sentence] = /^# .*\n\n([\s\S]*?)\n\n/m.exec(home);
const index = ["# Waggle", "", `> ${sentence.replaceAll("\n", " ").replaceAll("**", "")}`];
const full = [home];
let section;
for (const page of allPages()) {
  if (page.section !== section) index.push("", `## ${page.section}`, "");
  section = page.section;
  index.push(`- [${page.title}](${base}${page.link}.md)`);
  write(`${page.link}.md`, read(page.link));
  full.push(read(page.link));
}
write("llms.txt", `${index.join("\n")}\n`);
write("llms-full.txt", full.join("\n"));
