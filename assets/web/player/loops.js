// Loops in a text of chips: the whole copies behind the first are hidden, and the first says how often it is
// written. A chip's `loop`: [number of the loop, which copy, tokens of a copy].

// The marks without the copies, and id of the last mark of a first copy -> how often it is written.
player.foldLoops = function (marks) {
  const sizes = new Map(); // "loop copy" -> how many of its tokens are here
  const name = ([loop, copy]) => loop + " " + copy;
  for (const { loop } of marks) if (loop) sizes.set(name(loop), (sizes.get(name(loop)) || 0) + 1);
  const whole = ([loop, copy, period]) => sizes.get(name([loop, copy])) === period;
  const hidden = ({ loop }) => loop && loop[1] > 0 && whole(loop);
  const times = new Map(),
    last = new Map(); // loop -> its last mark that stays, and how many copies are hidden
  for (const mark of marks) {
    if (!mark.loop) continue;
    if (mark.loop[1] === 0) last.set(mark.loop[0], mark.id);
    else if (hidden(mark) && last.has(mark.loop[0])) {
      const id = last.get(mark.loop[0]);
      times.set(id, Math.max(times.get(id) || 0, mark.loop[1] + 1));
    }
  }
  return [marks.filter((mark) => !hidden(mark) || !last.has(mark.loop[0])), times];
};
