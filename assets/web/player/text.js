// Text in pictures: how wide a token is, how it is fitted; small number formats.
// The rules are the same in Python (visualizers/scene/marks.py), so that both sides decide alike.
const MONO = 0.602; // width of a character in a monospaced face, in em
const SANS = 0.6,
  THIN = 0.4; // an estimate for digits and lower-case letters; for spaces and points
const WIDE_RANGES = [
  "\u1100-\u115f", // Hangul letters
  "\u2e80-\ua4cf", // Chinese and Japanese characters, and Yi
  "\uac00-\ud7a3", // Hangul syllables
  "\uf900-\ufaff", // compatibility ideographs
  "\ufe30-\ufe6f", // compatibility forms
  "\uff00-\uff60\uffe0-\uffe6", // full-width letters and signs
];
const WIDE = new RegExp(`[${WIDE_RANGES.join("")}]|\\p{Emoji_Presentation}`, "u");
const NONE = /\p{M}|\u200d/u;

// Character cells a text takes as it is drawn: wide characters and emoji two, combining marks none.
player.cells = function (text) {
  let total = 0;
  for (const char of text) total += NONE.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return total;
};

const thin = (text) => text.split(/[ .,:;]/).length - 1;
player.textWidth = (text, size, face) =>
  size *
  (face === "sans" ? player.cells(text) * SANS - thin(text) * (SANS - THIN) : player.cells(text) * MONO);

// The whole token; without its leading ␣; cut with … if two characters stay; nothing.
player.fit = function (text, width, size) {
  const room = Math.floor(width / (MONO * size) + 1e-6);
  if (player.cells(text) <= room) return text;
  const bare = text.startsWith("␣") && text.length > 1 ? text.slice(1) : text;
  if (player.cells(bare) <= room) return bare;
  let kept = "";
  for (const char of bare) {
    if (player.cells(kept + char) > room - 1) break;
    kept += char;
  }
  return player.cells(kept) >= 2 ? kept + "…" : "";
};

// .0352: three significant digits, never 0 for something that is not nothing; as explorer/inspector/parts.py
// writes it.
player.probability = function (p) {
  if (p === 0) return "0";
  if (p < 1e-6) return p.toExponential(1).replace("e-", "e−");
  return p >= 0.9995 ? "1.00" : p.toPrecision(3).replace(/^0(\.0*\d{3}).*/, "$1");
};

// The colour of a role: a state, "ink", "soft", "amber", "line", "bg".
player.roleColour = (role, colours) => colours.roles[role] || colours.surface.text;
