// Keyboard on lists: j and k move, Enter or o opens, / searches, ? explains; on the page of one thing of a list, j and k
// go to the next and the previous one. Ctrl+Enter sends the form that one is in, in the small ones Enter where it is no
// new line. Escape leaves a field; menus close on it, too, or on a click outside.
(() => {
  "use strict";
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const isTyping = (target) => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

  const select = (index) => {
    const all = rows();
    if (!all.length) return;
    const row = all[Math.max(0, Math.min(index, all.length - 1))];
    all.forEach((other) => other.classList.toggle("selected", other === row));
    const link = row.querySelector(".main a[href]") || row.querySelector("a[href]");
    if (link) link.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const current = () => rows().findIndex((row) => row.classList.contains("selected"));

  // From the search box: the row at hand, else the first one.
  document.addEventListener("workbench:rows", () => select(Math.max(0, current())));

  const move = (by) => {
    if (rows().length) select(current() + by);
    else document.querySelector(`.page-head a[rel=${by > 0 ? "next" : "prev"}]`)?.click();
  };

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    o: () => rows()[current()]?.querySelector("a[href]")?.click(),
    "/": () => document.querySelector("[data-search]")?.focus(),
    "?": () => document.getElementById("keys-help")?.showModal(),
  };

  // A control of this page that has the key: a field is gone into, anything else pressed.
  const act = (key) => {
    const control = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!control) return null;
    return () => {
      if (control.matches("input, textarea, select")) control.focus();
      else control.click();
      // At once, for whoever types on.
      if (control.matches("summary")) enter(control.parentElement);
    };
  };

  const enter = (fold) => {
    if (!fold.matches?.("details.fold[open]") || fold.contains(document.activeElement?.closest(".drop"))) return;
    const refused = fold.querySelector(".drop [aria-invalid=true]");
    (refused || fold.querySelector(".drop textarea, .drop select, .drop input:not([type=hidden])"))?.focus();
  };

  // What sends the form that a field is in; a form can be many, each with its button beside the fields.
  const send = (field) => {
    const small = field.closest(".drop, .line-form");
    const buttons = (small || field.form)?.querySelectorAll("button:not([type=button], [disabled])") || [];
    // Which of several is meant, a large form doesn't say.
    if (small || buttons.length === 1) buttons[0]?.click();
  };
  const sends = (event) =>
    event.key === "Enter" &&
    !event.isComposing &&
    (event.ctrlKey || event.metaKey
      ? event.target.matches("input, textarea, select")
      : event.target.matches(".drop select, .line-form select"));

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      closeFolds(null);
      if (isTyping(event.target) && !event.isComposing) event.target.blur();
    }
    if (sends(event)) {
      event.preventDefault();
      send(event.target);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const action = actions[event.key] || act(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  });

  const closeFolds = (keep) => {
    for (const fold of document.querySelectorAll("details.fold[open]")) {
      if (fold !== keep) fold.open = false;
    }
  };
  document.addEventListener("click", (event) => {
    closeFolds(event.target.closest("details.fold"));
    if (event.target.closest("[data-help]")) actions["?"]();
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
  });
  // Opening a fold puts the cursor into its first field.
  document.addEventListener("toggle", (event) => enter(event.target), true);
  // A link to a field leads into it.
  const named = document.getElementById(location.hash.slice(1));
  if (named?.matches("input, textarea, select")) named.focus();

  // Choices that act at once when scripts run; without them the button beside them does it.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-autosubmit]");
    if (form) form.requestSubmit();
  });
})();
