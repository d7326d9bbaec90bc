// What the theme leaves to do for keyboards and screen readers: wide tables scroll by keys, and the search has a name.
window.addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
});
