// The site. Its pages are plain Markdown: "waggle docs" and GitHub show the same files.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { extend } from "./markdown";

interface Page {
  title: string;
  link: string;
  pages?: Page[];
}
interface Section {
  title: string;
  folder: string;
  pages: Page[];
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const sections: Section[] = JSON.parse(read("../nav.json")).filter((s: Section) => s.pages.length > 0);

// The site may live below a path, each version in a folder of its own: /waggle/0.1.0/.
const root = process.env.WAGGLE_DOCS_ROOT ?? "/";
const folder = process.env.WAGGLE_DOCS_FOLDER ?? "";
const version = process.env.WAGGLE_DOCS_VERSION ?? /^## (\S+)/m.exec(read("../../../CHANGELOG.md"))?.[1];

const entry = (p: Page) => ({
  text: p.title,
  link: `/${p.link}`,
  ...(p.pages && { items: p.pages.map((q) => ({ text: q.title, link: `/${q.link}` })), collapsed: true }),
});

export default defineConfig({
  title: "Waggle",
  description: "The backbone that multi-agent applications run on.",
  lang: "en",
  base: root + folder,
  cleanUrls: true,
  srcExclude: ["README.md", "testdata/**"],
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${root}${folder}icon.svg` }]],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    attrs: { disable: true }, // a path such as /sessions/{id} is text
    config: extend,
  },
  transformPageData(page) {
    if (page.relativePath === "index.md") {
      Object.assign(page.frontmatter, { sidebar: false, aside: false, pageClass: "home", editLink: false });
    }
  },
  themeConfig: {
    logo: "/icon.svg",
    nav: sections.map((s) => ({ text: s.title, link: `/${s.pages[0].link}`, activeMatch: `^/${s.folder}/` })),
    sidebar: sections.map((s) => ({ text: s.title, items: s.pages.map(entry) })),
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local", options: { detailedView: false } },
    socialLinks: [{ icon: "github", link: "https://github.com/waggle-dev/waggle" }],
    editLink: { pattern: "https://github.com/waggle-dev/waggle/edit/main/docs/site/:path", text: "Edit this page" },
    docFooter: { prev: "Before", next: "Next" },
    // Read by theme/Versions.vue.
    version: { current: version, list: `${root}versions.json` },
  } as never,
});
