// Makes src/style/inter.woff2: the letters of Inter that the console's own words need, in the weights that it uses. Other letters come
// from the system's fonts. Run by hand, as the result is committed.
import { readFileSync, writeFileSync } from "node:fs";
import subset from "subset-font";

const source = new URL("../../node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2", import.meta.url);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i)).join("");
const letters = `${range(0x20, 0x7e)}${range(0xa0, 0xff)}–—‘’“”•…€™←→↑↓−≤≥`;
const font = await subset(readFileSync(source), letters, {
  targetFormat: "woff2",
  variationAxes: { wght: { min: 400, max: 650, default: 400 } },
});
writeFileSync(new URL("../src/style/inter.woff2", import.meta.url), font);
console.log(`inter.woff2: ${font.length} bytes`);
