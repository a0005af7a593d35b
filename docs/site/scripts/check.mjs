// After the build: links and anchors lead somewhere, every page is in the navigation, pages are short, and words are those of a
// dictionary or of words.txt.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import dictionary from "dictionary-en";
import nspell from "nspell";
import { allPages, here } from "./pages.mjs";

const dist = join(here, ".vitepress/dist");
const base = (process.env.WAGGLE_DOCS_ROOT ?? "/") + (process.env.WAGGLE_DOCS_FOLDER ?? "");
const most = 1500; // words of a page of these sections
const short = ["start/", "concepts/"];
const faults = [];

const listed = ["index", ...allPages().map((p) => p.link)];
const found = readdirSync(here, { recursive: true })
  .filter((f) => f.endsWith(".md") && f !== "README.md" && !/(^|\/)(node_modules|\.vitepress)\//.test(f))
  .map((f) => f.slice(0, -3));
for (const link of found) if (!listed.includes(link)) faults.push(`${link}.md: not in nav.json`);
for (const link of listed) if (!found.includes(link)) faults.push(`nav.json: ${link}.md does not exist`);
for (const link of new Set(listed)) if (listed.filter((l) => l === link).length > 1) faults.push(`nav.json: ${link} is listed twice`);

links();
for (const link of found) {
  const text = readFileSync(join(here, `${link}.md`), "utf8");
  if (text.startsWith("<!-- Generated")) continue;
  const prose = proseOf(text);
  const words = prose.match(/[\p{L}\d]+(?:['’-][\p{L}\d]+)*/gu) ?? [];
  if (short.some((s) => link.startsWith(s)) && words.length > most) faults.push(`${link}.md: ${words.length} words, at most ${most}`);
  spelling(link, prose);
}
for (const f of faults) console.error(f);
console.log(`${found.length} pages checked, ${faults.length} faults`);
process.exitCode = faults.length ? 1 : 0;

/** Every link of the built site leads to a file, and to an element of it. */
function links() {
  const pages = new Map();
  for (const file of readdirSync(dist, { recursive: true }).filter((f) => f.endsWith(".html"))) {
    const html = readFileSync(join(dist, file), "utf8");
    pages.set(file.slice(0, -".html".length), { html, ids: new Set([...html.matchAll(/ id="([^"]+)"/g)].map((m) => m[1])) });
  }
  for (const [name, { html }] of pages) {
    for (const [, href] of html.matchAll(/<a\b[^>]*? href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      const [path, anchor] = href.split("#");
      let to = name;
      if (path) to = path.startsWith("/") ? path.slice(base.length) : relative(dist, join(dist, dirname(name), path));
      to = to.replace(/(^|\/)$/, "$1index").replace(/\.html$/, "");
      const page = pages.get(to);
      if (!page && !existsSync(join(dist, to))) faults.push(`${name}: ${href} leads nowhere`);
      if (page && anchor && !page.ids.has(decodeURIComponent(anchor))) faults.push(`${name}: ${href} has no such heading`);
    }
  }
}

/** The text of a page without its code, comments and addresses. */
function proseOf(text) {
  return text
    .replace(/^( *)(`{3,})[^\n]*\n[\s\S]*?^\1\2 *$/gm, "")
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/`[^`]*`/g, " ")
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/https?:\S+/g, " ")
    .replace(/^::: .*$/gm, "");
}

function spelling(link, prose) {
  spelling.speller ??= nspell(dictionary);
  spelling.own ??= new Set(
    readFileSync(join(here, "words.txt"), "utf8")
      .split("\n")
      .filter((w) => w && !w.startsWith("#")),
  );
  for (const [word] of prose.matchAll(/\p{L}+(?:['’]\p{L}+)*/gu)) {
    const plain = word.replace(/’/g, "'").replace(/'s$/, "");
    if (spelling.own.has(plain) || spelling.own.has(plain.toLowerCase()) || spelling.speller.correct(plain)) continue;
    faults.push(`${link}.md: ${word} is not in the dictionary (words.txt)`);
  }
}
