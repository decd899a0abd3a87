// Every page of the site: light and dark, and the search, whose index is read when somebody searches.
const { root } = document.documentElement.dataset,
  MOST = 12; // results on show
const found = (name) => document.querySelector(`[data-site=${name}]`);

// ---- light and dark; a page with lanes has its own way ----------------------------------------------------

// Calls `draw` with the theme, now and whenever it changes.
page.themed = function (draw) {
  document.addEventListener("explorer-theme", () => draw(document.documentElement.dataset.theme));
  draw(document.documentElement.dataset.theme);
};

function setTheme(theme) {
  if (page.app) return page.app.setTheme(theme);
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new CustomEvent("explorer-theme"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener(
  "change",
  () => page.stored("explorer-theme") || setTheme(dark.matches ? "dark" : "light"),
);

// ---- search -----------------------------------------------------------------------------------------------

let index = null;

function readIndex() {
  index ??= new Promise((onload, onerror) =>
    document.head.append(h("script", { src: root + "shared/search.js", onload, onerror })),
  ).then(() =>
    page.index.map((row) => ({ row, title: row[0].toLowerCase(), all: row.join(" ").toLowerCase() })),
  );
  return index;
}

const begins = (text, word) =>
  text.startsWith(word) || text.includes(" " + word) || text.includes("-" + word);

// What has every word at the beginning of one of its own: titles before the rest.
function matching(entries, words) {
  const rank = ({ title, all }) =>
    words.every((word) => begins(title, word)) ? 0 : words.every((word) => begins(all, word)) ? 1 : 2;
  return entries
    .map((entry) => [rank(entry), entry.title.length, entry.row])
    .filter(([place]) => place < 2)
    .sort((one, other) => one[0] - other[0] || one[1] - other[1])
    .map(([, , row]) => row);
}

async function search(field, list, count) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean),
    entries = await readIndex(),
    rows = words.length ? matching(entries, words) : [];
  list.hidden = !words.length;
  list.replaceChildren(
    ...rows
      .slice(0, MOST)
      .map(([title, path, kind]) =>
        h("li", {}, h("a", { href: root + path }, h("b", {}, title), h("small", {}, kind))),
      ),
    ...(words.length && !rows.length ? [h("li", { class: "none" }, "Nothing found. Try fewer words.")] : []),
  );
  count.textContent = words.length ? rows.length + " found" : "";
}

document.addEventListener("DOMContentLoaded", () => {
  const field = found("search"),
    list = found("found"),
    links = () => [...list.querySelectorAll("a")],
    close = () => (list.hidden = true);
  found("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    page.stored("explorer-theme", theme);
    setTheme(theme);
  });
  field.addEventListener("input", () => search(field, list, found("count")));
  field.addEventListener("focus", () => field.value && search(field, list, found("count")));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") links()[0]?.click();
    if (event.key === "ArrowDown") links()[0]?.focus();
    if (event.key === "Escape") close();
  });
  page.rove(list, "a", (link) => link.focus(), ["ArrowUp", "ArrowDown"]);
  list.addEventListener("keydown", (event) => event.key === "Escape" && (close(), field.focus()));
  document.addEventListener("pointerdown", ({ target }) => target.closest(".site-head") || close());
  // A link to something that can be closed opens it.
  const open = () => {
    const named = location.hash && document.getElementById(location.hash.slice(1));
    if (named?.tagName !== "DETAILS") return;
    named.open = true;
    named.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
});
