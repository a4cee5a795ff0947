// Loaded before the first paint: the reader's choice of light or dark, where one was made on this site.
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is barred: the system's choice stays.
  }
})();
