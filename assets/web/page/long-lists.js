// Lists of many cards, of which a phone shows the first (methods.css, style.css) until the button below them
// is pressed: 140 methods are 34 screens of a phone.
document.addEventListener("click", ({ target }) => {
  const list = target.closest?.(".rest-of-list")?.previousElementSibling;
  if (!list) return;
  const next = [...list.children].find((one) => !one.hidden && !one.checkVisibility());
  list.classList.add("whole");
  next?.querySelector("a, button").focus(); // the button is gone
});
