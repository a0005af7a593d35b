import type { InterruptRenderProps } from "@copilotkit/react-core/v2";
import { useState } from "react";

/** One question: of a plan, of a tool call, or of an agent. */
export function Approval({ interrupt, resolve }: Pick<InterruptRenderProps, "interrupt" | "resolve">) {
  const [feedback, setFeedback] = useState("");
  const why = feedback ? { feedback } : {};

  return (
    <section className="question">
      <p>{interrupt?.message}</p>
      <div className="reply">
        <button type="button" className="main" onClick={() => resolve({ approved: true, ...why })}>
          Yes
        </button>
        <button type="button" onClick={() => resolve({ approved: false, ...why })}>
          No
        </button>
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}
