import type { Theme } from "vitepress";
import Base from "vitepress/theme-without-fonts";
import { h } from "vue";
import { plainSearch } from "./search";
import Versions from "./Versions.vue";
import "./style.css";

export default {
  extends: Base,
  enhanceApp: plainSearch,
  Layout: () => h(Base.Layout, null, { "nav-bar-content-after": () => h(Versions) }),
} satisfies Theme;
