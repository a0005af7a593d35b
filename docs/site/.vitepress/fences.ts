// A fence with a title is a file: ```ts [page.tsx]. VitePress shows the title in code groups only.
import type { MarkdownRenderer } from "vitepress";

const title = /\[([^\]]+)\]\s*$/;

export function namedFences(md: MarkdownRenderer): void {
  const fence = md.renderer.rules.fence;
  if (!fence) throw new Error("VitePress renders no fences");
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const html = fence(tokens, index, ...rest);
    const name = title.exec(tokens[index].info)?.[1];
    const inGroup = tokens.slice(0, index).reduce((depth, t) => depth + (t.type === "container_code-group_open" ? 1 : t.type === "container_code-group_close" ? -1 : 0), 0) > 0;
    if (!name || inGroup) return html;
    return `<div class="named-file"><p class="file-name">${md.utils.escapeHtml(name)}</p>${html}</div>`;
  };
}
