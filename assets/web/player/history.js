// The history of a scene: marks, the step at which each was born, and every change of its fields by step.
// Knows nothing of drawing: it only says what every mark was at a step, in any direction, and where the action was.
const FRONT_KINDS = new Set(["node", "cell", "bar", "step"]);

// The data rectangle a mark covers: [x low, x high, y low, y high]; null where it is everywhere.
function extent(mark) {
  if (mark.kind === "path") {
    const xs = mark.points.map((p) => p[0]), ys = mark.points.map((p) => p[1]);
    return [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  }
  const x0 = mark.x ?? mark.x0, x1 = mark.x1 ?? x0, y0 = mark.y ?? mark.y0, y1 = mark.y1 ?? y0;
  const w = mark.x1 === undefined ? (mark.w ?? 1) / 2 : 0, h = mark.y1 === undefined ? (mark.h ?? 1) / 2 : 0;
  const across = x0 === undefined || mark.side ? [-Infinity, Infinity] : [Math.min(x0, x1) - w, Math.max(x0, x1) + w];
  const down = y0 === undefined ? [-Infinity, Infinity] : [Math.min(y0, y1) - h, Math.max(y0, y1) + h];
  return [...across, ...down];
}

const SPAN = 8; // columns a mark may cover to be found by its column; wider ones are in a list of their own

// The first of a list that fails a test, which those before it pass and those after it fail; its length if none does.
function firstNot(list, passes) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(list[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The last of `list`, sorted by its entries' first field, that is at most `step`: its place, -1 if there is none, and itself.
const lastUpTo = (list, step) => firstNot(list, (entry) => entry[0] <= step) - 1;
const newest = (list, step) => list[lastUpTo(list, step)];

// The first of `list`, an ordered list of entries, that reaches down to `top`.
const firstDownTo = (list, top) => firstNot(list, (entry) => entry.extent[3] < top);

player.History = class {
  constructor(ops) {
    this.entries = []; // in order of birth
    this.byId = new Map();
    this.byKind = new Map(); // kind -> its entries, in order of birth
    this.columns = new Map(); // column -> the entries that begin in it
    [this.leftmost, this.rightmost] = [Infinity, -Infinity];
    this.wide = []; // entries that cover many columns, or all
    this.fronts = []; // [step, x, y, the greatest x so far], by the view
    this.farthestFront = -Infinity; // the greatest x of them
    this.sayings = []; // [step, sentence]
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
      if (op.front) {
        this.farthestFront = Math.max(this.farthestFront, op.front[0]);
        this.fronts.push([step, op.front[0], op.front[1], this.farthestFront]);
      } else if (op.say) this.sayings.push([step, op.say]);
      else if (op.kind) this.birth(op, step);
      else this.change(op, step);
    }
  }

  birth(op, step) {
    const entry = { index: this.entries.length, born: step, died: op.gone ? step : Infinity, base: op, newest: op,
      changes: [], changed: step, extent: extent(op), known: 0, mark: op };
    this.entries.push(entry);
    this.byId.set(op.id, entry);
    if (!this.byKind.has(op.kind)) this.byKind.set(op.kind, []);
    this.byKind.get(op.kind).push(entry);
    this.locate(entry);
    if (!FRONT_KINDS.has(op.kind)) return;
    const before = this.reach.at(-1) || [-1, -Infinity, -Infinity];
    const x = op.x ?? op.x0, y = (op.y ?? op.y0 ?? 0) + (op.h ?? 0) / 2;
    if (x > before[1] || y > before[2]) this.reach.push([step, Math.max(x, before[1]), Math.max(y, before[2])]);
  }

  // Puts an entry where a question for its columns finds it. Most lists of a column are `ordered`: of one panel, and no entry
  // begins or ends above the one before it.
  locate(entry) {
    const [low, high] = entry.extent, column = high - low <= SPAN ? Math.floor(low) : null;
    if (entry.column === column) {
      if (column !== null) this.columns.get(column).ordered = false;
      return;
    }
    entry.column = column; // the list it was in before passes it over from now on
    if (column === null) return this.wide.push(entry);
    this.leftmost = Math.min(this.leftmost, column);
    this.rightmost = Math.max(this.rightmost, column);
    const list = this.columns.get(column);
    if (!list) return this.columns.set(column, Object.assign([entry], { ordered: true }));
    const above = list.at(-1);
    list.ordered &&= above.base.panel === entry.base.panel && above.extent[2] <= entry.extent[2] && above.extent[3] <= entry.extent[3];
    list.push(entry);
  }

  change(op, step) {
    const entry = this.byId.get(op.id);
    if (!entry) return; // a change of a mark that was never born: nothing to draw
    entry.changes.push([step, op.set]);
    entry.newest = { ...entry.newest, ...op.set };
    entry.changed = step;
    if ("gone" in op.set) entry.died = op.set.gone ? Math.min(entry.died, step) : Infinity;
    if (!("y1" in op.set || "points" in op.set || "x1" in op.set)) return;
    entry.extent = extent(entry.newest);
    this.locate(entry);
  }

  // The fields of a mark at a step, or null if it was not there. Asked twice between two changes it gives the same object.
  at(entry, step) {
    if (entry.born > step) return null;
    if (step >= entry.changed) return entry.newest.gone ? null : entry.newest;
    const count = lastUpTo(entry.changes, step) + 1;
    if (count !== entry.known) {
      entry.mark = { ...entry.base };
      for (let i = 0; i < count; i++) Object.assign(entry.mark, entry.changes[i][1]);
      entry.known = count;
    }
    return entry.mark.gone ? null : entry.mark;
  }

  // One field of a mark at a step at which it is there, without making the mark.
  value(entry, step, field) {
    if (step >= entry.changed) return entry.newest[field];
    for (let i = lastUpTo(entry.changes, step); i >= 0; i--) {
      if (field in entry.changes[i][1]) return entry.changes[i][1][field];
    }
    return entry.base[field];
  }

  // Entries that are there at a step, of a kind or of all, in order of birth.
  *present(kind, step) {
    for (const entry of (kind ? this.byKind.get(kind) : this.entries) || []) {
      if (entry.born > step) return;
      if (entry.died > step) yield entry;
    }
  }

  // The marks of one kind at a step, or of all, in order of birth.
  ofKind(kind, step) {
    return Array.from(this.present(kind, step), (entry) => this.at(entry, step)).filter(Boolean);
  }

  // The marks at a step that touch the columns from `low` to `high` and the rows that `rowsOf(mark as it was born)` says, [top,
  // bottom] or null for none, in order of birth. Costs what is there, not what the run has.
  inside(step, low, high, rowsOf) {
    const result = [];
    const look = (list, column) => {
      const within = list.ordered && rowsOf(list[0].base), last = within ? within[1] : Infinity;
      for (let i = within ? firstDownTo(list, within[0]) : 0; i < list.length; i++) {
        const entry = list[i], [left, right, top, bottom] = entry.extent;
        if (top > last && list.ordered) break;
        if (entry.born > step || entry.died <= step || entry.column !== column || right < low || left > high) continue;
        const rows = within || rowsOf(entry.base);
        if (rows && bottom >= rows[0] && top <= rows[1]) result.push(entry);
      }
    };
    look(this.wide, null);
    const last = Math.min(Math.floor(high), this.rightmost);
    for (let column = Math.max(Math.floor(low) - SPAN, this.leftmost); column <= last; column++) {
      look(this.columns.get(column) || [], column);
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
    let y = -Infinity;
    for (const kind of ["row", "cell", "node"]) {
      for (const { base } of this.present(kind, step)) {
        if (base.panel === panel && base.drawn !== false) y = Math.max(y, base.y1 ?? base.y + (base.h ?? 0.6) / 2);
      }
    }
    return y;
  }

  // The greatest x that the front or a mark ever had.
  farthest() {
    return Math.max(this.farthestFront, this.reach.length ? this.reach[this.reach.length - 1][1] : 0);
  }

  // Where the marks of a node stand that are there at a step: the column of the first, null if there is none.
  columnOf(node, step) {
    const result = this.entries.find((entry) => entry.base.node === node && entry.base.x !== undefined && entry.born <= step && entry.died > step);
    return result ? result.base.x : null;
  }
};
