// What the theme leaves to do for keyboards and screen readers: wide tables and code scroll by keys, and the search and
// the buttons beside code, which come as a page is scrolled, have names.
window.addEventListener("load", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  const name = () => {
    for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) wide.tabIndex = 0;
    document.querySelectorAll(".md-code__nav").forEach((buttons, number) => (buttons.ariaLabel = `Code ${number + 1}`));
  };
  name();
  new MutationObserver(name).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
});
