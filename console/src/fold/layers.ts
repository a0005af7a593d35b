/** A node of a graph of steps, with the ids of the nodes that it needs. */
export interface GraphNode {
  id: string;
  needs: readonly string[];
}

/** Where a node stands: its layer from the left, and its place in it from the top. */
export interface Place {
  id: string;
  layer: number;
  slot: number;
}

const sweeps = 8;

/**
 * Places nodes in layers: each right of all that it needs, and near to them. Ids that are not there and cycles
 * are ignored. The same graph is always placed the same.
 */
export function layers(nodes: readonly GraphNode[]): Place[] {
  const known = new Map(nodes.map((n) => [n.id, n]));
  const layer = new Map<string, number>();
  const open = new Set<string>();
  const rank = (id: string): number => {
    const done = layer.get(id);
    if (done !== undefined) return done;
    if (open.has(id)) return -1; // a cycle
    open.add(id);
    let most = -1;
    for (const need of known.get(id)?.needs ?? []) if (need !== id && known.has(need)) most = Math.max(most, rank(need));
    open.delete(id);
    layer.set(id, most + 1);
    return most + 1;
  };
  for (const n of nodes) rank(n.id);
  const columns: string[][] = [];
  for (const n of nodes) {
    const at = layer.get(n.id) ?? 0;
    for (let i = columns.length; i <= at; i++) columns.push([]);
    columns[at]?.push(n.id);
  }
  untangle(columns, known);
  return columns.flatMap((column, i) => column.map((id, slot) => ({ id, layer: i, slot })));
}

/** Orders each column by the average place of its neighbours, forward and backward in turn. */
function untangle(columns: string[][], known: Map<string, GraphNode>): void {
  const after = new Map<string, string[]>();
  for (const n of known.values()) for (const need of n.needs) after.set(need, [...(after.get(need) ?? []), n.id]);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const forward = sweep % 2 === 0;
    const place = new Map<string, number>();
    for (const column of columns) for (const [i, id] of column.entries()) place.set(id, i);
    for (const column of forward ? columns : columns.toReversed()) {
      const weight = new Map(
        column.map((id, i) => {
          const near = ((forward ? known.get(id)?.needs : after.get(id)) ?? []).map((n) => place.get(n)).filter((n) => n !== undefined);
          return [id, near.length === 0 ? i : near.reduce((a, b) => a + b, 0) / near.length];
        }),
      );
      const before = new Map(column.map((id, i) => [id, i]));
      column.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0) || (before.get(a) ?? 0) - (before.get(b) ?? 0));
      for (const [i, id] of column.entries()) place.set(id, i);
    }
  }
}
