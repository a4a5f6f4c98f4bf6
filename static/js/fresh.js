// Loads a page again when the server says that it shows the past, but never under somebody's hands.
(() => {
  "use strict";
  const isBusy = () =>
    document.querySelector("details.fold[open] form, dialog[open]") !== null || document.activeElement?.matches("input, textarea, select");

  document.addEventListener("stale", () => {
    if (!isBusy()) window.location.reload();
    for (const notice of document.querySelectorAll("[data-stale]")) notice.hidden = false;
  });
})();
