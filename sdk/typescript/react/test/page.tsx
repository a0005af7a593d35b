import { type Run, WaggleClient } from "@waggle-dev/client";
import { useQuestions, useRun, useSession, useTeam, WaggleProvider } from "@waggle-dev/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const client = new WaggleClient({ url: query.get("url") ?? "", backoff: { min: 5, max: 50 } });
Object.assign(window, { client }); // tests look at what it gets

function Questions({ of }: { of: { session: string } | { team: string } }) {
  const { questions, answer } = useQuestions(of);
  return questions.map((q) => (
    <p key={q.id} className="question">
      {q.text}{" "}
      <button type="button" onClick={() => void answer(q, true)}>
        yes
      </button>
    </p>
  ));
}

function Chat({ id }: { id: string }) {
  const [colour, setColour] = useState("none");
  const paint = {
    description: "Paints the page.",
    run: (o: { colour: string }) => {
      setColour(o.colour);
      return `painted ${o.colour}`;
    },
  };
  const { view, send } = useSession(id, { tools: { paint } });
  const [run, setRun] = useState<Run>();
  const [text, setText] = useState("");
  const shown = useRun(run);
  return (
    <>
      <input id="text" value={text} onChange={(e) => setText(e.target.value)} />
      <button type="button" id="chat" onClick={() => setRun(send(text))}>
        chat
      </button>
      <button type="button" id="plan" onClick={() => setRun(send(text, { mode: "plan", confirmPlan: true }))}>
        plan
      </button>
      <p id="colour">{colour}</p>
      <p id="run" data-status={shown.status}>
        {shown.text}
      </p>
      {view.items.map((item) => (
        <div
          key={item.kind + item.id}
          className={item.kind}
          data-status={"status" in item ? item.status : "pending" in item ? "pending" : ""}
        >
          {item.kind === "plan"
            ? item.steps.map((s) => (
                <i key={s.id} className="step" data-status={s.status}>
                  {s.title}
                </i>
              ))
            : "text" in item && item.text}
        </div>
      ))}
      <Questions of={{ session: id }} />
    </>
  );
}

function Team({ id }: { id: string }) {
  const { view } = useTeam(id);
  return (
    <>
      <p id="members">{view.members.map((m) => `${m.route}: ${m.status}`).join(", ")}</p>
      {view.messages.map((m) => (
        <p key={m.from + m.id}>{m.text}</p>
      ))}
      <Questions of={{ team: id }} />
    </>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <WaggleProvider client={client}>
      {query.get("team") ? <Team id={query.get("team") ?? ""} /> : <Chat id={query.get("session") ?? ""} />}
    </WaggleProvider>
  </StrictMode>,
);
