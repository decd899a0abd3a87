// The history of a scene: marks, the step at which each was born, and every change of its fields by step. It
// only says what every mark was at a step, in any direction, and where the action was.
const PLACED = new Set(["node", "cell"]); // kinds of marks that stand for a token
const FRONT_KINDS = new Set(["node", "cell", "bar", "step"]);

// The data rectangle a mark covers: [x low, x high, y low, y high]. Of all marks only panels change theirs,
// which are everywhere.
function extent(mark) {
  if (mark.kind === "path") {
    const xs = mark.points.map((p) => p[0]),
      ys = mark.points.map((p) => p[1]);
    return [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  }
  if (mark.kind === "panel") return [-Infinity, Infinity, -Infinity, Infinity];
  const x0 = mark.x ?? mark.x0,
    x1 = mark.x1 ?? x0,
    y0 = mark.y ?? mark.y0,
    y1 = mark.y1 ?? y0;
  const w = mark.x1 === undefined ? (mark.w ?? 1) / 2 : 0,
    h = mark.y1 === undefined ? (mark.h ?? 1) / 2 : 0;
  const across =
    x0 === undefined || mark.side ? [-Infinity, Infinity] : [Math.min(x0, x1) - w, Math.max(x0, x1) + w];
  const down = y0 === undefined ? [-Infinity, Infinity] : [Math.min(y0, y1) - h, Math.max(y0, y1) + h];
  return [...across, ...down];
}

const SPAN = 8; // columns that a mark covers at most to be found by its column

// The last of `list`, sorted by its entries' first field, that is at most `step`.
function newest(list, step) {
  let at = list.length - 1; // a loop of its own, as it is asked for every mark of a redraw
  while (at >= 0 && list[at][0] > step) at -= 1;
  return at < 0 ? undefined : list[at];
}

player.History = class {
  constructor(ops) {
    this.entries = []; // in order of birth
    this.byId = new Map();
    this.byKind = new Map(); // kind -> its entries, in order of birth
    // Column -> the entries that begin in it; null -> those that cover many columns, or all.
    this.columns = new Map();
    this.fronts = []; // [step, x, y, the greatest x so far], by the view
    this.sayings = []; // [step, sentence]
    this.moments = []; // [step, {kind, text, node, size}]
    this.reach = []; // [step, x, y], how far the marks reached, growing
    this.last = -1;
    this.append(-1, ops || []);
  }

  feed(deltas) {
    for (const delta of deltas) {
      this.append(delta.step, delta.ops);
      this.last = Math.max(this.last, delta.step);
    }
  }

  append(step, ops) {
    for (const op of ops) {
      if (op.front) this.fronts.push([step, ...op.front, Math.max(op.front[0], this.reached(Infinity))]);
      else if (op.say) this.sayings.push([step, op.say]);
      else if (op.moment) this.moments.push([step, op.moment]);
      else if (op.kind) this.birth(op, step);
      else this.change(op, step);
    }
  }

  birth(op, step) {
    const entry = {
      index: this.entries.length,
      born: step,
      base: op,
      extent: extent(op),
      versions: [[step, op]],
      changed: step,
      mark: op,
    }; // [step, what it was from then on]; when the newest came, and it
    this.entries.push(entry);
    this.byId.set(op.id, entry);
    if (!this.byKind.has(op.kind)) this.byKind.set(op.kind, []);
    this.byKind.get(op.kind).push(entry);
    const [low, high] = entry.extent,
      column = high - low > SPAN ? null : Math.floor(low);
    if (!this.columns.has(column)) this.columns.set(column, []);
    this.columns.get(column).push(entry);
    if (!FRONT_KINDS.has(op.kind)) return;
    const before = this.reach.at(-1) || [-1, -Infinity, -Infinity];
    const x = op.x ?? op.x0,
      y = (op.y ?? op.y0 ?? 0) + (op.h ?? 0) / 2;
    if (x > before[1] || y > before[2])
      this.reach.push([step, Math.max(x, before[1]), Math.max(y, before[2])]);
  }

  change(op, step) {
    const entry = this.byId.get(op.id);
    if (!entry) return; // a change of a mark that was never born: nothing to draw
    entry.mark = { ...entry.mark, ...op.set };
    entry.changed = step;
    entry.versions.push([step, entry.mark]);
  }

  // A mark at a step, or null if it was not there. Asked twice between two changes it gives the same object.
  at(entry, step) {
    const mark = step < entry.changed ? newest(entry.versions, step)?.[1] : entry.mark;
    return mark && !mark.gone ? mark : null;
  }

  // The marks of one kind at a step, or of all, in order of birth.
  ofKind(kind, step) {
    const marks = [];
    for (const entry of (kind ? this.byKind.get(kind) : this.entries) || []) {
      if (entry.born > step) break;
      const mark = this.at(entry, step);
      if (mark) marks.push(mark);
    }
    return marks;
  }

  // The marks at a step that touch the columns from `low` to `high` and the rows that `rowsOf(mark as it was
  // born)` says, [top, bottom] or null for none, in order of birth. Costs the marks of these columns.
  inside(step, low, high, rowsOf) {
    const result = [];
    for (const [column, list] of this.columns) {
      if (column !== null && (column < Math.floor(low) - SPAN || column > high)) continue;
      for (const entry of list) {
        const [left, right, top, bottom] = entry.extent;
        if (entry.born > step) break;
        const rows = right >= low && left <= high && rowsOf(entry.base);
        if (rows && bottom >= rows[0] && top <= rows[1]) result.push(entry);
      }
    }
    result.sort((a, b) => a.index - b.index);
    return result.map((entry) => this.at(entry, step)).filter(Boolean);
  }

  // The sentence of the newest step up to `step` that has one.
  captionAt(step) {
    return newest(this.sayings, step)?.[1] ?? null;
  }

  front(step) {
    const [, x, y] = newest(this.fronts.length ? this.fronts : this.reach, step) || [step, 0, 0];
    return { x, y };
  }

  // The greatest x that the front has had up to a step, -Infinity where the view names no front.
  reached(step) {
    return newest(this.fronts, step)?.[3] ?? -Infinity;
  }

  // How far down the rows of a panel reach at a step.
  lowest(panel, step) {
    const marks = ["row", "cell", "node"].flatMap((kind) => this.ofKind(kind, step));
    const own = marks.filter((mark) => mark.panel === panel && mark.drawn !== false);
    return own.reduce((y, mark) => Math.max(y, mark.y1 ?? mark.y + (mark.h ?? 0.6) / 2), -Infinity);
  }

  // The greatest x that the front or a mark ever had.
  farthest() {
    return Math.max(this.reached(Infinity), this.reach.at(-1)?.[1] ?? 0);
  }

  // Where the marks of a node stand that are there at a step: the place of the first, null if there is none.
  placeOf(node, step) {
    const entry = this.entries.find(
      (one) => one.base.node === node && one.base.x !== undefined && this.at(one, step),
    );
    return entry ? { x: entry.base.x, y: entry.base.y ?? null } : null;
  }

  // The place of the first mark of a token in a column at a step, null if there is none.
  placeIn(column, step) {
    const near = [column - 1, column].flatMap((key) => this.columns.get(key) || []),
      entry = near.find((one) => one.base.x === column && PLACED.has(one.base.kind) && this.at(one, step));
    return entry ? { x: column, y: entry.base.y } : null;
  }
};
