// Applies the reader's choice of light or dark, if one was made on this site. It is loaded before the first paint.
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is blocked: the system's choice applies.
  }
})();
