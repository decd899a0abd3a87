// Where the slider stands, what it counts, and playback: all only the browser's, nothing is decoded again.
// Tells every lane how many of its steps to show.
const RATES = { 1: 2, 4: 8 }; // steps per second in playback
const KEYS = {
  step: (row, index) => index + 1,
  forwards: (row) => row.t,
  target_tokens: (row) => row.target_tokens,
  seconds: (row) => row.seconds,
};
const WORDS = { step: "step ", forwards: "forward ", target_tokens: "token " };
const short = (number) => String(Number(number.toFixed(1))); // a part of the layers is a part of a forward

page.Playback = class {
  constructor(app) {
    this.app = app;
    this.unit = "step";
    this.speed = "live";
    this.rewind();
  }

  // As before the first step of a run.
  rewind() {
    this.ticks = []; // the values the slider can stand at
    this.position = 0; // how many of them are passed
    this.following = true;
    this.stopPlaying();
  }

  setSpeed(speed) {
    this.speed = speed;
    if (speed === "live" && this.app.run && this.app.run.state === "running") this.catchUp();
  }

  setUnit(unit) {
    if (unit === this.unit) return;
    this.app.bar.unit.querySelector(`[value=${unit}]`).checked = true;
    const end = this.following || this.position === this.ticks.length,
      share = this.position / (this.ticks.length || 1);
    this.unit = unit;
    this.count();
    this.seek(end ? this.ticks.length : Math.round(share * this.ticks.length), !end);
  }

  // Finds the slider's values again, in the chosen unit.
  count() {
    const values = new Set();
    for (const lane of this.app.lanes)
      lane.rows.forEach((row, index) => values.add(KEYS[this.unit](row, index)));
    this.ticks = [...values].sort((a, b) => a - b);
    this.app.bar.slider.max = String(this.ticks.length);
  }

  // What a lane had used up after its first `count` steps, in the chosen unit.
  valueOf(lane, count) {
    return KEYS[this.unit](lane.rows[count - 1], count - 1);
  }

  seek(position, byHand) {
    this.position = Math.max(0, Math.min(position, this.ticks.length));
    if (byHand) {
      this.following = this.position === this.ticks.length;
      this.stopPlaying();
      this.app.moments?.leave();
    }
    const value = this.position ? this.ticks[this.position - 1] : -1;
    for (const lane of this.app.lanes) {
      let shown = lane.rows.length;
      while (shown > 0 && this.valueOf(lane, shown) > value) shown -= 1;
      lane.show(shown);
    }
    this.drawPosition(value);
    this.app.emit("shown");
  }

  // To where a lane has done this many of its steps.
  seekStep(lane, step) {
    const at = Math.min(step, lane.rows.length),
      value = at && this.valueOf(lane, at);
    this.seek(this.ticks.findIndex((tick) => tick >= value) + 1 || this.ticks.length, true);
  }

  drawPosition(value) {
    const last = this.ticks[this.ticks.length - 1] || 0,
      slider = this.app.bar.slider;
    const words =
      this.unit === "seconds"
        ? Math.max(value, 0).toFixed(2) + " s of " + last.toFixed(2) + " s"
        : WORDS[this.unit] + short(Math.max(value, 0)) + " of " + short(last);
    this.app.bar.where.textContent = words;
    slider.value = String(this.position);
    slider.setAttribute("aria-valuetext", words);
    slider.style.setProperty("--done", (100 * this.position) / (this.ticks.length || 1) + "%");
  }

  catchUp() {
    this.following = true;
    if (this.speed === "live") {
      this.stopPlaying();
      this.seek(this.ticks.length, false);
    } else if (!this.playing) this.togglePlay();
  }

  // ---- playback: only the browser's, nothing is decoded again ---------------------------------------------

  togglePlay() {
    if (this.playing) return this.stopPlaying();
    if (this.position >= this.ticks.length && this.app.run && this.app.run.over) this.position = 0;
    // A step at a time.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.seek(this.position + 1, true);
    const steps = Math.max(1, ...this.app.lanes.map((lane) => lane.rows.length));
    let before = performance.now(),
      at = this.position;
    const tick = (now) => {
      const rate = (RATES[this.speed] || 8) * (this.unit === "step" ? 1 : this.ticks.length / steps);
      at = Math.min(at + ((now - before) / 1000) * rate, this.ticks.length);
      before = now;
      if (Math.floor(at) !== this.position) this.seek(Math.floor(at), false);
      if (this.position >= this.ticks.length && (!this.app.run || this.app.run.over))
        return this.stopPlaying();
      this.playing = requestAnimationFrame(tick);
    };
    this.playing = requestAnimationFrame(tick);
    this.app.bar.play.setAttribute("aria-pressed", "true");
  }

  stopPlaying() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing);
    this.playing = null;
    this.app.bar.play.setAttribute("aria-pressed", "false");
  }
};
