// The list of cases: rows are chosen with x, X (all since the last one) and *; the keys of the buttons over the list act on
// the chosen rows, or choose the one at hand first. After a button the cursor is where it was.
(() => {
  "use strict";
  const boxes = () => [...document.querySelectorAll("input[form=bulk][name=ids]:not(:disabled)")];
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const current = () => rows().findIndex((row) => row.classList.contains("selected"));
  const boxOf = (row) => row?.querySelector("input[name=ids]:not(:disabled)");
  const isTyping = (target) =>
    target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog");
  const PLACE = "triage-row";
  let last = -1;

  const tell = () => {
    const output = document.querySelector("output[data-chosen]");
    if (output) output.value = boxes().filter((box) => box.checked).length;
  };

  const toggle = (index) => {
    const box = boxOf(rows()[index]);
    if (!box) return;
    box.checked = !box.checked;
    last = index;
    tell();
  };

  const chooseRange = (index) => {
    const all = rows();
    const [from, to] = last < 0 ? [index, index] : [Math.min(last, index), Math.max(last, index)];
    for (const row of all.slice(Math.max(0, from), to + 1)) {
      const box = boxOf(row);
      if (box) box.checked = true;
    }
    last = index;
    tell();
  };

  const chooseAll = () => {
    const all = boxes();
    const wanted = !all.every((box) => box.checked);
    for (const box of all) box.checked = wanted;
    tell();
  };

  const chooseNothing = () => {
    for (const box of boxes()) box.checked = false;
    last = -1;
    tell();
  };

  // A button that acts on rows takes the one at hand where none is chosen.
  const chooseAtHand = () => {
    const all = boxes();
    if (all.length && !all.some((box) => box.checked) && current() >= 0) toggle(current());
  };

  const writeNote = () => {
    const link = rows()[current()]?.querySelector("td.main a[href]");
    if (!link) return;
    link.hash = "write-note";
    link.click();
  };

  const actions = {
    x: () => toggle(current()),
    X: () => chooseRange(current()),
    "*": chooseAll,
    n: writeNote,
  };

  // Before the keys of every page, so that these find the row chosen.
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (event.key === "Enter") pressOwnButton(event);
      if (isTyping(event.target)) return;
      if (event.key === "Escape" && !document.querySelector("details.fold[open]")) chooseNothing();
      if (document.querySelector(`[data-needs-rows][data-key="${CSS.escape(event.key)}"]`)) chooseAtHand();
      const action = actions[event.key];
      if (!action || !document.querySelector("form[data-bulk]")) return;
      event.preventDefault();
      if (current() >= 0 || event.key === "*") action();
    },
    true,
  );

  // All buttons are of one form; Enter in a field means the one beside it.
  const pressOwnButton = (event) => {
    const drop = event.target.closest("form[data-bulk] .drop");
    if (!drop || !event.target.matches("input")) return;
    event.preventDefault();
    drop.querySelector("button[name=verb]")?.click();
  };

  document.addEventListener("change", (event) => {
    if (!event.target.matches("input[form=bulk][name=ids]")) return;
    last = rows().indexOf(event.target.closest("[data-row]"));
    tell();
  });
  // Shift and a click choose all rows since the last one, as X does.
  document.addEventListener("click", (event) => {
    const row = event.shiftKey && event.target.matches("input[form=bulk][name=ids]") && event.target.closest("[data-row]");
    if (row && event.target.checked) chooseRange(rows().indexOf(row));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-bulk], form.undo")) sessionStorage.setItem(PLACE, String(current()));
  });

  const restore = () => {
    const place = Number(sessionStorage.getItem(PLACE) ?? -1);
    sessionStorage.removeItem(PLACE);
    const all = rows();
    if (place < 0 || !all.length) return;
    const row = all[Math.min(place, all.length - 1)];
    row.classList.add("selected");
    row.querySelector("td.main a[href]")?.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  restore();
  tell();
})();
