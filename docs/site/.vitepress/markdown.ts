import type { MarkdownRenderer } from "vitepress";

const title = /\[([^\]]+)\]\s*$/;

export function extend(md: MarkdownRenderer): void {
  namedFences(md);
  scrollingTables(md);
  picturesOfBothThemes(md);
}

/** A fence with a title is a file: ```ts [page.tsx]. VitePress shows the title in code groups only. */
function namedFences(md: MarkdownRenderer): void {
  const fence = md.renderer.rules.fence;
  if (!fence) throw new Error("VitePress renders no fences");
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const html = fence(tokens, index, ...rest);
    const name = title.exec(tokens[index].info)?.[1];
    const group = tokens.slice(0, index).findLast((t) => t.type.startsWith("container_code-group_"));
    const inGroup = group?.type === "container_code-group_open";
    if (!name || inGroup) return html;
    return `<div class="named-file"><p class="file-name">${md.utils.escapeHtml(name)}</p>${html}</div>`;
  };
}

/** A wide table scrolls, also by keys. */
function scrollingTables(md: MarkdownRenderer): void {
  md.renderer.rules.table_open = () => '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n';
  md.renderer.rules.table_close = () => "</table></div>\n";
}

/** A picture NAME-light.webp has a sibling NAME-dark.webp: the page shows the one of its theme. */
function picturesOfBothThemes(md: MarkdownRenderer): void {
  const image = md.renderer.rules.image;
  if (!image) throw new Error("VitePress renders no pictures");
  md.renderer.rules.image = (tokens, index, ...rest) => {
    const token = tokens[index];
    token.attrSet("loading", "lazy");
    const source = token.attrGet("src") ?? "";
    if (!source.endsWith("-light.webp")) return image(tokens, index, ...rest);
    token.attrSet("class", "only-light");
    const light = image(tokens, index, ...rest);
    token.attrSet("class", "only-dark");
    token.attrSet("src", source.replace(/light\.webp$/, "dark.webp"));
    return light + image(tokens, index, ...rest);
  };
}
