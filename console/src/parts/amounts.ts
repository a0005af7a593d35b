import type { SessionSummary } from "@waggle-dev/client";
import type { Usage } from "../fold/usage.ts";
import { language, t } from "../words.ts";

/** A number of tokens in short: "940", "12.4k", "3.1M". */
export function tokens(n: number): string {
  return new Intl.NumberFormat(language() === "en" ? "en" : language(), { notation: "compact", maximumFractionDigits: 1 }).format(n);
}

/** A number in full: "12,044". */
export function amount(n: number): string {
  return new Intl.NumberFormat(language() === "en" ? "en" : language()).format(n);
}

/** An amount of US dollars, with as many digits as a small one needs: "$12.40", "$0.0084". */
export function dollars(n: number): string {
  const digits = n === 0 || n >= 0.1 ? 2 : n >= 0.0001 ? 4 : 6;
  return `$${n.toFixed(digits)}`;
}

/** What went into models and came out: "1,204 in (812 cached) · 96 out". What is not known is left out. */
export function inAndOut({ input, cached, output }: Usage): string {
  const parts = [
    input === undefined ? "" : t(cached ? "facts.in.cached" : "facts.in", { n: amount(input), cached: amount(cached ?? 0) }),
    output === undefined ? "" : t("facts.out", { n: amount(output) }),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** The tokens of a session in full; empty: it is not known which of them are input. */
export const tokensOf = (s: SessionSummary): string =>
  s.input_tokens === undefined
    ? ""
    : inAndOut({
        input: s.input_tokens,
        output: (s.tokens ?? 0) - s.input_tokens,
        ...(s.cached_tokens ? { cached: s.cached_tokens } : {}),
      });
