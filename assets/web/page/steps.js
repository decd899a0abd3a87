// The steps of a lane as sentences: the text alternative to its pictures, and a quick way to read a run. The
// sentences come with the lane's text (visualizers/views/any_lane/step_captions.py), so they are the same
// whatever view is on show. The step on show is marked.
page.Steps = class {
  constructor(lane) {
    Object.assign(this, {
      lane,
      button: lane.stepsButton,
      panel: lane.stepsPanel,
      list: lane.stepsPanel.firstChild,
    });
    this.toggle = page.disclose(this.button, this.panel, () => this.draw());
  }

  // The sentence of the step on show.
  sentence() {
    return this.lane.chips && this.lane.shown > 0
      ? this.lane.chips.history.captionAt(this.lane.shown - 1)
      : null;
  }

  // Adds what is new, and marks the step on show.
  draw() {
    if (this.panel.hidden || !this.lane.chips) return;
    const history = this.lane.chips.history;
    if (this.history !== history) this.list.replaceChildren();
    this.history = history;
    for (let i = this.list.childElementCount; i < history.sayings.length; i++)
      this.list.append(h("li", {}, history.sayings[i][1]));
    if (this.current) this.current.removeAttribute("aria-current");
    this.current = this.list.children[this.lane.shown - 1] || null;
    if (!this.current) return;
    this.current.setAttribute("aria-current", "step");
    const { offsetTop, offsetHeight } = this.current,
      { scrollTop, clientHeight } = this.panel;
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight)
      this.panel.scrollTop = offsetTop - clientHeight / 2;
  }
};
