// Light, dark or as the system has it; remembered in this browser. Loaded in the head, so that a page never flashes.
(() => {
  "use strict";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const read = () => {
    try {
      return localStorage.getItem("theme") || "auto";
    } catch {
      return "auto";
    }
  };
  const apply = () => {
    const choice = read();
    const theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    document.documentElement.dataset.bsTheme = theme;
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    for (const group of document.querySelectorAll("[data-theme-switch]")) group.hidden = false;
    apply();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-choice]");
    if (!button) return;
    try {
      localStorage.setItem("theme", button.dataset.themeChoice);
    } catch {
      // Without storage the choice can't be kept; nothing to do about it.
    }
    apply();
  });
})();
