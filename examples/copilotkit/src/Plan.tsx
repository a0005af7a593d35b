import { z } from "zod";

export const planContent = z.object({
  summary: z.string().optional(),
  tasks: z.array(z.object({ id: z.string(), title: z.string(), status: z.string() })),
});

const marks: Record<string, string> = { pending: "○", running: "◐", completed: "●", failed: "✕", cancelled: "–" };

/** A plan and how far its tasks are. */
export function Plan({ content }: { content: z.infer<typeof planContent> }) {
  return (
    <section className="plan">
      <h2>
        Plan <small>{content.summary}</small>
      </h2>
      <ol>
        {content.tasks.map((task) => (
          <li key={task.id} data-status={task.status}>
            <span aria-hidden="true">{marks[task.status] ?? "○"}</span> {task.title} <small>{task.status}</small>
          </li>
        ))}
      </ol>
    </section>
  );
}
