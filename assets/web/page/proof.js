// Proof live, a part of the Microscope section: many seeds of a short continuation, and how far what was counted lies from the
// target's exact law. Draws what decoders/speculative/losslessness.py answers; the counting stops when nobody asks on.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const SAMPLES = [[200, "200"], [1000, "1,000"], [4000, "4,000"]];
  const LENGTHS = [[2, "2"], [3, "3"], [4, "4"]];
  const ABOUT = "Each seed writes a short continuation of the lane's prompt. Continuations are counted in cells whose chances under "
    + "the target are computed exactly; the chart shows the total variation distance, Σ |share − chance| / 2, between what was "
    + "counted and what is due. Chance alone makes it fall with the root of the number of seeds: 99 of 100 exact samplers stay "
    + "below the dotted line. The broken verifier exists here alone: after a rejection it draws from all of p instead of "
    + "max(p − q, 0).";

  const digits = (value) => value.toFixed(3).replace(/^0/, "");
  const grouped = (value) => value.toLocaleString("en-US");

  class Proof {
    constructor(app) {
      this.chart = new page.Chart(app.data.palette);
      this.samples = 1000;
      this.length = 3;
      this.temperature = h("input", { type: "text", value: "1", inputmode: "decimal", autocomplete: "off",
        "aria-label": "Temperature of the proof" });
      this.broken = h("input", { type: "checkbox", checked: true });
      const press = () => (this.proof || this.starting ? this.stop() : this.start());
      this.button = h("button", { type: "button", class: "primary", onclick: press }, "Prove");
      this.said = h("p", { role: "status" });
      this.results = h("ul", { class: "proof-results" });
      const soft = (text) => h("span", { class: "soft" }, text);
      const choice = (label, options, name) => page.choice(label, options, this[name], (value) => (this[name] = value)).element;
      this.chart.element.hidden = true;
      this.element = h("section", { "aria-label": "Proof live" },
        h("h2", {}, "Proof live: is it the target's law?"), h("p", { class: "soft" }, ABOUT),
        h("div", { class: "compare-choices" }, this.button, soft("seeds"), choice("Seeds", SAMPLES, "samples"),
          soft("tokens each"), choice("Tokens each", LENGTHS, "length"), page.labelled("temperature", this.temperature, "number"),
          h("label", { class: "field check" }, this.broken, h("span", {}, "with the broken verifier"))),
        this.said, this.chart.element, this.results);
    }

    show(run, lane, number) {
      const other = this.run !== run || this.lane !== lane;
      Object.assign(this, { run, lane, number });
      if (!other) return;
      this.stop();
      this.said.textContent = "";
      this.chart.element.hidden = true;
      this.results.replaceChildren();
    }

    stop() {
      this.proof = null;
      this.starting = null;
      this.button.textContent = "Prove";
    }

    say(sentence) {
      this.stop();
      this.said.textContent = sentence;
    }

    async start() {
      const temperature = Number(this.temperature.value.replace(",", "."));
      if (!(temperature > 0)) return this.say("The proof needs a temperature above 0: at 0 every seed writes the same text.");
      const { samples, length, lane } = this;
      const asked = { run: this.run.id, lane, temperature, samples, length, broken: this.broken.checked };
      this.starting = asked;
      this.button.textContent = "Stop";
      this.said.textContent = "Computing the target's exact law …";
      const begun = await page.call("explorer_prove", asked);
      if (this.starting !== asked) return;
      if (begun.error) return this.say(begun.error);
      this.starting = null;
      this.proof = begun.proof;
      while (this.proof === begun.proof) {
        const state = await page.patient("explorer_proof", { proof: begun.proof });
        if (this.proof !== begun.proof) return;
        if (state.error) return this.say(state.error);
        this.draw(state);
        if (state.done >= state.samples) this.stop();
      }
    }

    draw({ samples, done, cells, band, ways }) {
      const seeds = done < samples ? `${grouped(done)} of ${grouped(samples)} seeds` : `${grouped(done)} seeds`;
      this.said.textContent = `${seeds}, ${cells} cells.`;
      this.chart.element.hidden = false;
      const first = band.findIndex((row) => row[0] >= samples / 20); // before that, chance alone fills the picture
      const late = (curve) => curve.filter(([count]) => count >= band[first][0]);
      const values = [...late(band).map((row) => row[2]), ...ways.flatMap((way) => late(way.curve).map((point) => point[1]))];
      const names = [this.number, "broken"];
      const at = (count) => band.reduce((a, b) => (Math.abs(b[0] - count) < Math.abs(a[0] - count) ? b : a));
      this.chart.draw({
        title: ["distance to the target's law", "total variation, measured; dotted: 99 of 100 exact samplers stay below, simulated"],
        x: { words: "seeds", max: samples }, y: { min: 0, max: Math.max(...values) },
        lines: [{ lane: "chance", index: 0, soft: true, points: late(band).map((row) => [row[0], row[2]]) },
          ...ways.map((way, index) => ({ lane: names[index], index, points: late(way.curve) }))],
        read: (place) => {
          const row = at(place), found = ways.map((way) => [way.name, way.curve.find(([count]) => count === row[0])]);
          const told = found.map(([name, point]) => `${name} ${point ? digits(point[1]) : "—"}`).join(" · ");
          return `After ${grouped(row[0])} seeds: ${told} · chance: median ${digits(row[1])}, edge ${digits(row[2])}.`;
        },
      });
      this.results.replaceChildren(...ways.filter((way) => way.distance !== null).map((way, index) => this.result(way, index)));
    }

    // One line of what is known of a way of decoding so far.
    result({ name, distance, edge, inside, beyond }, index) {
      const rare = beyond > 0 ? `${Math.max(1, Math.round(100 * beyond))} of 100 exact samplers are as far off`
        : "none of 500 exact samplers was so far off";
      const words = inside ? "inside what chance allows" : "outside: this is not the target's law";
      return h("li", { class: inside ? "inside" : "outside" },
        h("b", {}, `${inside ? "✓" : "✕"} ${index ? name : `${this.number} ${name}`}: ${words}`),
        ` (distance ${digits(distance)}, edge ${digits(edge)}; ${rare}).`);
    }
  }

  (page.microscopeParts = page.microscopeParts || []).push(Proof);
})(window.ExplorerPage);
