// The history of a scene: marks, the step at which each was born, and every change of its fields by step.
// Knows nothing of drawing: it only says what every mark was at a step, in any direction, and where the action was.
window.DecodingPlayer = window.DecodingPlayer || {};
(function (player) {
  "use strict";

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

  class History {
    constructor(ops) {
      this.entries = []; // in order of birth
      this.byId = new Map();
      this.panelsOf = new Map(); // kind -> the panels in which it ever occurred
      this.fronts = []; // [step, x, y], what the view said
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
        if (op.front) this.fronts.push([step, op.front[0], op.front[1]]);
        else if (op.say) this.sayings.push([step, op.say]);
        else if (op.kind) this.birth(op, step);
        else this.change(op, step);
      }
    }

    birth(op, step) {
      const entry = { born: step, base: op, newest: op, changes: [], changed: step, extent: extent(op) };
      this.entries.push(entry);
      this.byId.set(op.id, entry);
      if (!this.panelsOf.has(op.kind)) this.panelsOf.set(op.kind, new Set());
      this.panelsOf.get(op.kind).add(op.panel);
      if (!FRONT_KINDS.has(op.kind)) return;
      const before = this.reach.length ? this.reach[this.reach.length - 1] : [-1, -Infinity, -Infinity];
      const x = op.x ?? op.x0, y = (op.y ?? op.y0 ?? 0) + (op.h ?? 0) / 2;
      if (x > before[1] || y > before[2]) this.reach.push([step, Math.max(x, before[1]), Math.max(y, before[2])]);
    }

    change(op, step) {
      const entry = this.byId.get(op.id);
      if (!entry) return; // a change of a mark that was never born: nothing to draw
      entry.changes.push([step, op.set]);
      entry.newest = { ...entry.newest, ...op.set };
      entry.changed = step;
      if ("y1" in op.set || "points" in op.set || "x1" in op.set) entry.extent = extent(entry.newest);
    }

    // The fields of a mark at a step, or null if it was not there.
    at(entry, step) {
      if (entry.born > step) return null;
      let mark = entry.newest;
      if (step < entry.changed) {
        mark = { ...entry.base };
        for (const [when, set] of entry.changes) if (when <= step) Object.assign(mark, set);
      }
      return mark.gone ? null : mark;
    }

    // All marks at a step; `keep(extent)` may leave some out before their state is computed.
    marks(step, keep) {
      const found = [];
      for (const entry of this.entries) {
        if (entry.born > step) break;
        if (keep && !keep(entry.extent, entry.base)) continue;
        const mark = this.at(entry, step);
        if (mark) found.push(mark);
      }
      return found;
    }

    // The sentence of the newest step up to `step` that has one.
    said(step) {
      let found = null;
      for (const [when, sentence] of this.sayings) if (when <= step) found = sentence;
      return found;
    }

    front(step) {
      const list = this.fronts.length ? this.fronts : this.reach;
      let found = null;
      for (const entry of list) {
        if (entry[0] > step) break;
        found = entry;
      }
      return found ? { x: found[1], y: found[2] } : { x: 0, y: 0 };
    }
  }

  player.History = History;
})(window.DecodingPlayer);
