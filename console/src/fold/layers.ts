/** A node of a graph of steps, with the ids of the nodes that it needs. */
export interface GraphNode {
  id: string;
  needs: readonly string[];
}

/** Where something stands: its layer from the left, and its place in it from the top. */
export interface Spot {
  layer: number;
  slot: number;
}

/** Where a node stands. */
export interface Place extends Spot {
  id: string;
}

/** A line from a node to one that needs it, with its spots in the layers between them: no node stands there. */
export interface Way {
  from: string;
  to: string;
  by: readonly Spot[];
}

const sweeps = 8;

/**
 * Places nodes in layers: each right of all that it needs, and near to them. Ids that are not there and cycles
 * are ignored. The same graph is always placed the same.
 */
export function layers(nodes: readonly GraphNode[]): { places: Place[]; ways: Way[] } {
  const known = new Map(nodes.map((n) => [n.id, n]));
  const layer = ranks(known);
  const columns: string[][] = [];
  const put = (id: string, at: number) => {
    for (let i = columns.length; i <= at; i++) columns.push([]);
    columns[at]?.push(id);
  };
  for (const n of nodes) put(n.id, layer.get(n.id) ?? 0);
  const chained = new Map<string, { id: string; needs: string[] }>(nodes.map((n) => [n.id, { id: n.id, needs: [] }]));
  const ways: { from: string; to: string; by: string[] }[] = [];
  for (const n of nodes)
    for (const need of new Set(n.needs)) {
      const [from, to] = [layer.get(need), layer.get(n.id) ?? 0];
      if (from === undefined || from >= to) continue;
      const way = { from: need, to: n.id, by: [] as string[] };
      let last = need;
      for (let at = from + 1; at < to; at++) {
        const id = `\u0000by ${ways.length} ${at}`;
        put(id, at);
        way.by.push(id);
        chained.set(id, { id, needs: [last] });
        last = id;
      }
      chained.get(n.id)?.needs.push(last);
      ways.push(way);
    }
  untangle(columns, chained);
  const spots = new Map(columns.flatMap((column, i) => column.map((id, slot) => [id, { layer: i, slot }] as const)));
  const at = (id: string) => spots.get(id) as Spot;
  return {
    places: [...spots].filter(([id]) => known.has(id)).map(([id, spot]) => ({ id, ...spot })),
    ways: ways.map((w) => ({ ...w, by: w.by.map(at) })),
  };
}

/** The layers of nodes. */
function ranks(known: ReadonlyMap<string, GraphNode>): Map<string, number> {
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
  for (const id of known.keys()) rank(id);
  return layer;
}

/** Orders each column by the average place of its neighbours, forward and backward in turn. */
function untangle(columns: string[][], known: ReadonlyMap<string, GraphNode>): void {
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

/** A drawing of a graph: where its nodes begin, the lines between them, and how large it is. */
export interface Drawing {
  at: ReadonlyMap<string, { x: number; y: number }>;
  lines: readonly { key: string; path: string }[];
  width: number;
  height: number;
}

/** The size of what is drawn: of a node, and of the gaps between nodes. */
export interface Sizes {
  width: number;
  height: number;
  gapX: number;
  gapY: number;
}

/** Draws a graph. Lines pass beside nodes. */
export function drawn({ places, ways }: ReturnType<typeof layers>, size: Sizes): Drawing {
  const columns: { slot: number; node: string | undefined; put: (y: number) => void }[][] = [];
  const at = new Map<string, { x: number; y: number }>();
  const bends = new Map<Spot, number>();
  const spot = (s: Spot, node: string | undefined, put: (y: number) => void) => {
    for (let i = columns.length; i <= s.layer; i++) columns.push([]);
    columns[s.layer]?.push({ slot: s.slot, node, put });
  };
  const x = (layer: number) => layer * (size.width + size.gapX);
  for (const p of places) spot(p, p.id, (y) => at.set(p.id, { x: x(p.layer), y }));
  for (const w of ways) for (const s of w.by) spot(s, undefined, (y) => bends.set(s, y + size.gapY / 2));
  let height = 0;
  for (const column of columns) {
    let y = 0;
    for (const s of column.sort((a, b) => a.slot - b.slot)) {
      s.put(y);
      y += s.node === undefined ? size.gapY : size.height + size.gapY;
    }
    height = Math.max(height, y - size.gapY);
  }
  const lines = ways.map((w) => {
    const [from, to] = [at.get(w.from) as { x: number; y: number }, at.get(w.to) as { x: number; y: number }];
    const half = size.gapX / 2;
    let [px, py] = [from.x + size.width, from.y + size.height / 2];
    let path = `M${px} ${py}`;
    const curve = (tx: number, ty: number) => {
      path += `C${px + half} ${py} ${tx - half} ${ty} ${tx} ${ty}`;
      [px, py] = [tx, ty];
    };
    for (const s of w.by) {
      curve(x(s.layer), bends.get(s) as number);
      px += size.width;
      path += `H${px}`;
    }
    curve(to.x, to.y + size.height / 2);
    return { key: `${w.from} ${w.to}`, path };
  });
  return { at, lines, width: columns.length * (size.width + size.gapX) - size.gapX, height };
}
