// How the parts of the page come into Gradio's tabs, which start later than they do. A saved page has no
// Gradio and calls none of this.

// Gradio has mounted the component in which a part of the page has its place (explorer/page/tabs): the part
// moves in, with what has the focus in it.
page.place = function (name, element) {
  const { bar, root } = page.app,
    focused = document.activeElement,
    part = { top: bar.root, decode: root }[name];
  const home = element && element.querySelector(".explorer"),
    there = document.documentElement.classList.contains("explorer-home-ready");
  if (!home || (name === "top" && !there)) return; // the top row waits, so that all moves at once
  if (home.moveBefore && part.isConnected) home.moveBefore(part, null);
  else home.append(part);
  if (focused && part.contains(focused)) focused.focus({ preventScroll: true });
};

// Gradio's tabs are there, and so is the server.
page.attach = function (functions) {
  const app = page.app,
    tabs = document.querySelector("#explorer-tabs [role=tablist]");
  for (const part of [app.bar.sections, app.bar.models]) part.remove(); // Gradio's own are in their places
  app.bar.content.setAttribute("role", "none"); // a page has one main part, and it is Gradio's
  page.rove(tabs, "[role=tab]", (tab) => {
    tab.focus();
    tab.click();
  });
  document.documentElement.classList.add("explorer-home-ready");
  page.place("top", document.getElementById("explorer-drawn-top"));
  page.connect(functions);
  app.greet();
  if (app.wanted) app.showSection(app.wanted);
};
