import { language } from "../words.ts";

/** A number of tokens in short: "940", "12.4k", "3.1M". */
export function tokens(n: number): string {
  return new Intl.NumberFormat(language() === "en" ? "en" : language(), { notation: "compact", maximumFractionDigits: 1 }).format(n);
}

/** An amount of US dollars, with as many digits as a small one needs: "$12.40", "$0.0084". */
export function dollars(n: number): string {
  const digits = n === 0 || n >= 0.1 ? 2 : n >= 0.0001 ? 4 : 6;
  return `$${n.toFixed(digits)}`;
}
