// The running text of a lane as real text: one chip per token, coloured by source, entropy or
// log-probability. Page text, not SVG: it wraps, is selected, found and read aloud. Tokens are only ever set
// as text.
const ONE_LINE = 120,
  // Chips kept in the page where they are not a text to read; the rest is out of sight anyway.
  SOME_LINES = 400;
// As in player.css: there the line is four lines, the newest last.
const PHONE = window.matchMedia("(max-width: 760px)");
const SPACES = { "␣": " ", "↵": "\n", "⇥": "\t" };
let made = 0; // lists on this page, so that every token has an id of its own

// What a screen reader says: "␣the, accepted, p .631".
function spoken(mark, { state, spans }) {
  const words = [mark.text, state[mark.state]?.word || mark.state];
  if (typeof mark.logprob === "number") words.push("p " + player.probability(Math.exp(mark.logprob)));
  if (spans[mark.span]) words.push(spans[mark.span]);
  if (mark.part) words.push(mark.part);
  return words.join(", ");
}

// Gives an element these children in this order, and leaves alone those that are there.
function place(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach(
    (child, i) => parent.children[i] === child || parent.insertBefore(child, parent.children[i] || null),
  );
}

player.Chips = class extends player.Drawing {
  constructor(element, { oneLine = true, ...options }) {
    super(oneLine ? element : element.lastElementChild, options); // see explorer/export/drawings.py
    this.prose = !oneLine; // a text to read, in a place that scrolls, with a button that copies it
    this.scroller = element;
    this.parts = h("div", { class: "dp-parts", hidden: "" }); // the legend of a text to read
    if (this.prose) element.append(this.parts);
    this.number = made += 1;
    this.by = "source";
    this.folded = false; // whether the copies of a loop are hidden
    this.reset({});
    this.theme(this.options.theme);
    new ResizeObserver(() => {
      this.seen = this.root.clientWidth > 0;
      this.schedule();
    }).observe(this.root);
    this.root.addEventListener("pointerover", (event) => this.options.onHover(this.markOf(event.target)));
    this.root.addEventListener("pointerleave", () => this.options.onHover(null));
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("blur", () => this.point(null));
    this.root.addEventListener("click", (event) => {
      const mark = this.markOf(event.target);
      if (mark) this.options.onPick(mark);
    });
  }

  reset(head) {
    super.reset(head);
    this.made = new Map(); // id -> {element, look}
    this.root.replaceChildren();
  }

  colour(by) {
    this.by = by;
    this.root.classList.toggle("by-amount", by !== "source");
    this.schedule();
  }

  // Hides the copies in a loop behind a count, or shows them.
  fold(folded) {
    this.folded = folded;
    this.schedule();
  }

  // Outlines the chips of a node; null: those that are kept.
  highlight(node) {
    const wanted = [].concat(node ?? this.kept());
    for (const { element, mark } of this.made.values())
      element.classList.toggle("dp-outlined", wanted.includes(mark.node));
  }

  keep(node, by) {
    this.unseen = this.prose;
    super.keep(node, by);
  }

  // A text that scrolls goes to the first of the kept chips, once for each time that they are named.
  reveal() {
    const first = this.unseen && this.root.querySelector(".dp-outlined");
    if (!first) return;
    this.unseen = false;
    this.scroller.scrollTop +=
      first.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - 40;
  }

  markOf(target) {
    const element = target.closest && target.closest(".dp-chip");
    return element ? this.made.get(element.dataset.id)?.mark || null : null;
  }

  // Enter goes to the newest token, arrows walk, Enter says why, Escape leaves. The list stays the one tab
  // stop.
  key(event) {
    const all = [...this.root.querySelectorAll(".dp-chip")].filter(
      (chip) => this.prose || chip.offsetLeft >= 0,
    );
    const at = this.pointed ? all.indexOf(this.pointed) : -1,
      last = all.length - 1;
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    if (event.key === "Enter" && at >= 0) this.options.onPick(this.markOf(this.pointed));
    else if (event.key === "Enter") this.point(all[last]);
    else if (event.key === "Escape" && at >= 0) this.point(null);
    else {
      const to = {
        ArrowRight: at + 1,
        ArrowDown: at + 1,
        ArrowLeft: at - 1,
        ArrowUp: at - 1,
        Home: 0,
        End: last,
      }[event.key];
      if (at < 0 || to === undefined) return;
      this.point(all[Math.max(0, Math.min(to, last))]);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  // The token that the keys stand at; null for none.
  point(element) {
    if (this.pointed) this.pointed.classList.remove("dp-pointed");
    this.pointed = element;
    if (!element) this.root.removeAttribute("aria-activedescendant");
    else {
      element.classList.add("dp-pointed");
      this.root.setAttribute("aria-activedescendant", element.id);
      if (this.prose) element.scrollIntoView({ block: "nearest" });
    }
    this.options.onHover(element ? this.markOf(element) : null);
  }

  draw() {
    // Hidden, say in a closed tab: drawn when it is seen again.
    if (!(this.seen ??= this.root.clientWidth > 0)) return;
    let marks = this.marksAt();
    if (this.prose) this.explain(marks);
    this.times = new Map();
    if (this.folded) [marks, this.times] = player.foldLoops(marks);
    if (this.prose) marks = marks.filter((mark) => mark.state !== "rejected");
    else marks = marks.slice(PHONE.matches ? -SOME_LINES : -ONE_LINE);
    place(
      this.root,
      marks.map((mark) => this.chip(mark)),
    );
    this.paintedStep = this.step();
    this.reveal();
  }

  // Says below a text what its bands are, if it has any.
  explain(marks) {
    const loops = marks.some(({ loop }) => loop?.[1]) ? ["loop"] : [],
      parts = [...new Set(marks.map(({ part }) => part).filter(Boolean)), ...loops];
    if (this.explained === parts.join()) return;
    this.explained = parts.join();
    this.parts.hidden = !parts.length;
    const says = (part) => (part === "loop" ? "copy in a loop" : part),
      look = (part) => (part === "loop" ? "dp-loop" : "dp-part dp-part-" + part.replaceAll(" ", "-"));
    this.parts.replaceChildren(...parts.map((part) => h("span", { class: look(part) }, says(part))));
  }

  // The element of a mark, made once and restyled only when what it says has changed.
  chip(mark) {
    let entry = this.made.get(mark.id);
    if (!entry) {
      const element = h("span", {
        role: "option",
        id: "dp-" + this.number + "-" + mark.id,
        "data-id": mark.id,
      });
      entry = { element, look: "" };
      this.made.set(mark.id, entry);
    }
    const parted = this.parting && this.parting.node === mark.node ? this.parting.words : "",
      times = this.times.get(mark.id);
    const look = [
      mark.state,
      mark.text,
      mark.logprob,
      mark.entropy,
      mark.span,
      mark.part,
      mark.loop,
      this.folded,
      times,
      this.by,
      this.settled?.[mark.node],
      parted,
    ].join(" ");
    entry.mark = mark;
    if (look !== entry.look) this.dress(entry, mark, look, times);
    return entry.element;
  }

  dress(entry, mark, look, times) {
    const { element } = entry,
      { state, spans } = this.colours;
    entry.look = look;
    element.className = "dp-chip is-" + (state[mark.state] ? mark.state : "chosen");
    element.classList.toggle("dp-outlined", this.kept().includes(mark.node));
    if (spans[mark.span]) element.classList.add("dp-" + mark.span);
    element.title = spans[mark.span] || "";
    if (mark.part) element.classList.add("dp-part", "dp-part-" + mark.part.replaceAll(" ", "-"));
    if (mark.loop?.[1]) element.classList.add("dp-loop");
    if (this.folded && mark.loop?.[1] === 0) element.classList.add("dp-looped");
    element.setAttribute(
      "aria-label",
      spoken(mark, this.colours) + (times ? `, written ${times} times` : ""),
    );
    if (this.prose) this.write(element, mark);
    else this.fill(element, mark);
    if (times) element.append(h("span", { class: "dp-times", title: `written ${times} times` }, "×" + times));
    player.dressParting(element, mark, this.parting, this.prose);
  }

  // A token in a text that wraps. Its word is outlined without the space before it, which stays behind at the
  // end of a line.
  write(element, mark) {
    const text = mark.plain ?? mark.text.replace(/[␣↵⇥]/g, (sign) => SPACES[sign]),
      word = text.trimStart();
    if (word === text || !word) element.replaceChildren(text);
    else element.replaceChildren(text.slice(0, -word.length), h("span", { class: "dp-word" }, word));
  }

  // A token as a chip: its white space as signs, the mark of its state, its number as a bar.
  fill(element, mark) {
    const space = mark.text.startsWith("␣"),
      { sign } = this.colours.state[mark.state] || {};
    element.replaceChildren(mark.text.slice(space ? 1 : 0));
    if (space) element.prepend(h("span", { class: "dp-space" }, "␣"));
    if (sign) element.append(h("span", { class: "dp-chip-mark", "aria-hidden": "true" }, sign));
    this.amount(element, mark);
  }

  // By entropy and by log-probability: a bar under the token, longer = less sure, in bits (8 bits fill the
  // chip). By decision depth: as long as the share of the layers after which the token was settled,
  // `settled`: node -> [layers, of how many].
  amount(element, mark) {
    if (this.by === "source" || mark.state === "prompt") return;
    const [deep, layers] = (this.by === "depth" && this.settled?.[mark.node]) || [];
    if (layers) {
      element.append(h("span", { class: "dp-chip-bar", style: `width:${(100 * deep) / layers}%` }));
      element.title = "settled after " + deep + " of " + layers + " layers";
    }
    if (this.by === "depth") return;
    const nats =
      this.by === "entropy" ? mark.entropy : typeof mark.logprob === "number" ? -mark.logprob : null;
    if (typeof nats !== "number") return;
    const bits = nats / Math.LN2;
    element.append(h("span", { class: "dp-chip-bar", style: `width:${Math.min(100, 12.5 * bits)}%` }));
    element.title = (this.by === "entropy" ? "entropy " : "−log₂ p ") + bits.toFixed(2) + " bits";
  }
};
