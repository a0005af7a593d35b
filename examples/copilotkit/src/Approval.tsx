import type { InterruptRenderProps } from "@copilotkit/react-core/v2";
import { useState } from "react";

/** One question: of a plan, of a tool call, or of an agent. */
export function Approval({ interrupt, resolve }: { interrupt: InterruptRenderProps["interrupt"]; resolve: (reply: object) => void }) {
  const [feedback, setFeedback] = useState("");
  const [given, setGiven] = useState(false); // the others are waited for
  const give = (reply: object) => {
    setGiven(true);
    resolve(reply);
  };
  const why = feedback ? { feedback } : {};

  return (
    <section className="question" data-given={given}>
      <p>{interrupt?.message}</p>
      <div className="reply">
        <button type="button" className="main" disabled={given} onClick={() => give({ approved: true, ...why })}>
          Yes
        </button>
        <button type="button" disabled={given} onClick={() => give({ approved: false, ...why })}>
          No
        </button>
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}
