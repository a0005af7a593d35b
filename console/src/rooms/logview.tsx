import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Bar } from "../fold/bars.ts";
import type { LogModel } from "../model/log.ts";
import { Skeleton } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { Log } from "./log.tsx";
import { Trace } from "./trace.tsx";

/** A log below its head: as a trace, event by event, or as the room makes it out of its children. */
export function LogView(p: {
  model: LogModel;
  view: string;
  ready: boolean;
  /** What people have to know whatever they look at; empty: nothing. */
  loud: string;
  /** The event that began the bar which a trace shows picked, if the address names one. */
  bar?: number | undefined;
  /** Goes to the events. */
  toLog: () => void;
  /** More to say about a bar of the trace. */
  about?: ((b: Bar) => string) | undefined;
  children: ComponentChildren;
}): JSX.Element {
  const { model, view } = p;
  const [picked, pick] = useState(view === "log" ? (model.at.peek() ?? 0) : 0);
  return (
    <>
      {p.loud && (
        <p class="loud">
          <Icon name="unknown" />
          {p.loud}
        </p>
      )}
      <div class="view" id="view" role="tabpanel" aria-busy={model.behind} aria-labelledby={`tab-${view}`}>
        {!p.ready ? (
          <Skeleton />
        ) : view === "trace" ? (
          <Trace
            key={p.bar}
            model={model}
            about={p.about}
            bar={p.bar}
            open={(seq) => {
              pick(seq);
              p.toLog();
            }}
          />
        ) : view === "log" ? (
          <Log model={model} picked={picked} pick={pick} />
        ) : (
          p.children
        )}
      </div>
    </>
  );
}
