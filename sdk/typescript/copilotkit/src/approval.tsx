import type { InterruptRenderProps } from "@copilotkit/react-core/v2";
import { type ReactElement, useState } from "react";
import { type CallArguments, readArguments } from "./edit.js";

/** An answer to a question. */
export interface ApprovalReply {
  approved: boolean;
  feedback?: string;
  /** What the call runs with in place of its arguments. */
  editedArgs?: CallArguments;
}

/** One question: of a plan, of a tool call, of a budget or of an agent. */
export interface ApprovalProps {
  interrupt: InterruptRenderProps["interrupt"] & object;
  /** Gives the answer. Once all open questions have theirs, the run goes on. */
  answer: (reply: ApprovalReply) => void;
  /** The arguments of a call that may be approved with others. After a refused answer they are those of the answer. */
  args?: CallArguments | undefined;
  /** Why the server has refused the last answer. */
  problem?: string | undefined;
  className?: string | undefined;
}

/** A question with yes, no and the reason; and for a call whose arguments may be changed, with its arguments. */
export function Approval({ interrupt, answer, args, problem, className = "waggle-approval" }: ApprovalProps): ReactElement {
  const proposed = JSON.stringify(args, null, 2);
  const [feedback, setFeedback] = useState("");
  const [given, setGiven] = useState(false); // the others are waited for
  const [text, setText] = useState(problem && args ? proposed : undefined); // undefined: the call stays as it is
  const edited = text === undefined ? {} : readArguments(text);
  const give = (approved: boolean) => {
    setGiven(true);
    const changed = approved && edited.args && (problem || text !== proposed) ? { editedArgs: edited.args } : {};
    answer({ approved, ...(feedback ? { feedback } : {}), ...changed });
  };
  const wrong = edited.problem ?? (given ? undefined : problem);
  return (
    <section className={className} data-given={given}>
      <p>{interrupt.message}</p>
      {text !== undefined && (
        <textarea
          aria-label="Arguments"
          rows={5}
          spellCheck={false}
          disabled={given}
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
      )}
      {wrong && <p role="alert">{wrong}</p>}
      <div className="reply">
        <button type="button" className="main" disabled={given || edited.problem !== undefined} onClick={() => give(true)}>
          Yes
        </button>
        <button type="button" disabled={given} onClick={() => give(false)}>
          No
        </button>
        {args && (
          <button type="button" disabled={given} onClick={() => setText(text === undefined ? proposed : undefined)}>
            {text === undefined ? "Edit" : "As it was"}
          </button>
        )}
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}
