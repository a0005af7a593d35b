import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { columns } from "../fold/board.ts";
import type { Task } from "../fold/team.ts";
import { t } from "../words.ts";
import { Face, StateChip, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";

/** So many tasks of a column are shown at first, and more with each click. */
const some = 20;

/** The tasks of a team and of its nested teams, in a column for each state. */
export function Board(p: {
  tasks: readonly Task[];
  name: (route: string) => string;
  member: (route: string, text: JSX.Element) => JSX.Element;
  open: (seq: number) => void;
}): JSX.Element {
  const [more, setMore] = useState<Record<string, number>>({});
  const [marked, mark] = useState("");
  if (p.tasks.length === 0) return <Face title={t("team.board.empty")} text={t("team.board.empty.text")} />;
  const known = new Map(p.tasks.map((task) => [key(task.team, task.id), task]));
  const find = (task: Task) => {
    mark(key(task.team, task.id));
    setMore({ ...more, [task.status]: p.tasks.length });
    requestAnimationFrame(() => document.getElementById(`task-${key(task.team, task.id)}`)?.focus());
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="board" tabIndex={0} aria-label={t("team.board")}>
      {columns(p.tasks).map(({ status, tasks }) => {
        const shown = tasks.slice(0, some + (more[status] ?? 0));
        return (
          <div key={status} class="column">
            <h2>
              <StateChip state={status} small />
              <span class="count">{tasks.length}</span>
            </h2>
            <ul>
              {shown.map((task) => {
                const id = key(task.team, task.id);
                return (
                  <li key={id} id={`task-${id}`} class={id === marked ? "card marked" : "card"} tabIndex={-1}>
                    <button type="button" class="plain" onClick={() => p.open(task.seq)}>
                      <Text>{task.name}</Text>
                    </button>
                    <span class="who">
                      {p.member(
                        task.assignee,
                        <>
                          <Icon name="person" />
                          <Text>{p.name(task.assignee)}</Text>
                        </>,
                      )}
                      <code>
                        <Text>{task.id}</Text>
                      </code>
                    </span>
                    {task.needs.length > 0 && (
                      <span class="needs">
                        {t("team.board.needs")}
                        {task.needs.map((need) => {
                          const first = known.get(key(task.team, need));
                          return first ? (
                            <button key={need} type="button" class={`link state-${first.status}`} onClick={() => find(first)}>
                              {first.status === "completed" && "✓ "}
                              <Text>{need}</Text>
                            </button>
                          ) : (
                            <Text key={need}>{need}</Text>
                          );
                        })}
                      </span>
                    )}
                  </li>
                );
              })}
            </ul>
            {tasks.length > shown.length && (
              <button type="button" onClick={() => setMore({ ...more, [status]: (more[status] ?? 0) + some })}>
                {t("talk.more")}
              </button>
            )}
          </div>
        );
      })}
    </section>
  );
}

const key = (team: string, id: string) => `${team}/${id}`;
