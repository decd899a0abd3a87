// The front page: a recorded run that plays again and again, until somebody pauses it or the window is left.
const RATE = 3, // steps per second
  REST = 3500; // milliseconds on the whole run

async function start() {
  const home = document.getElementById("front");
  const [element, line, button] = ["scene", "chips", "play"].map((name) =>
    home.querySelector(`[data-front=${name}]`),
  );
  const { palette, lane } = JSON.parse(await page.unpack("front")),
    last = lane.ops.length - 1,
    still = matchMedia("(prefers-reduced-motion: reduce)");
  const options = { palette, theme: document.documentElement.dataset.theme, onPick() {}, onHover() {} },
    scene = new player.Scene(element, options),
    chips = new player.Chips(line, options),
    drawings = [
      [scene, lane.head, lane.ops],
      [chips, lane.text_head, lane.chips],
    ];
  for (const [drawing, head, steps] of drawings) {
    drawing.reset(head);
    drawing.feed(steps.map((ops, step) => ({ step, ops })));
  }
  let step = -1,
    playing = !still.matches,
    seen = true,
    timer;
  const show = (at) => {
    step = at;
    for (const [drawing] of drawings) drawing.show(step);
    scene.end(step === last);
    home.dataset.step = step;
  };
  const go = () => {
    clearTimeout(timer);
    if (!playing || !seen || document.hidden) return;
    show(step >= last ? 0 : step + 1);
    timer = setTimeout(go, step === last ? REST : 1000 / RATE);
  };
  const name = () => (button.textContent = playing ? "Pause" : "Play");
  button.addEventListener("click", () => {
    playing = !playing;
    name();
    go();
  });
  document.addEventListener("visibilitychange", go);
  new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    go();
  }).observe(home);
  page.themed((theme) => drawings.forEach(([drawing]) => drawing.theme(theme)));
  name();
  show(playing ? 0 : last);
}

start();
