// starts the page's modules after its first paint: a phone on a slow network shows the page first
addEventListener("DOMContentLoaded", () => {
  requestAnimationFrame(() => {
    setTimeout(() => {
      for (const waiting of document.querySelectorAll("script[type=later]")) {
        const module = document.createElement("script");
        module.type = "module";
        module.async = false; // they run in their order
        module.src = waiting.src;
        waiting.replaceWith(module);
      }
    });
  });
});
