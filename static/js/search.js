// Search boxes over a list that htmx brings in: Enter and Escape leave the box for the first row that is found, and keys
// that are pressed before it is there wait for it. A list that is shown already is not asked for again, and addresses
// carry no empty parameters.
(() => {
  "use strict";
  // Milliseconds after which keys wait no longer.
  const PATIENCE = 5000;
  const PAUSE = 20;
  const TYPED_IN = "input:not([type=checkbox]), textarea";
  // The form whose box was left, and the keys pressed since, until its list is there.
  let left = null;

  const isNothing = (form, name, value) => value === "" && !form.dataset.saysEmpty.split(" ").includes(name);

  const sorted = (query) => {
    query.sort();
    return query.toString();
  };

  const asked = (form) => {
    const query = new URLSearchParams(new FormData(form));
    if (form.dataset.saysEmpty !== undefined) {
      for (const [name, value] of [...query]) if (isNothing(form, name, value)) query.delete(name);
    }
    return sorted(query);
  };
  const isShown = (form) => asked(form) === sorted(new URLSearchParams(location.search));

  const leave = (search) => {
    const form = search.form;
    if (!form?.hasAttribute("hx-get")) {
      search.blur();
      return;
    }
    left = { form, keys: [], timer: window.setTimeout(() => arriveIf(() => true), PATIENCE) };
    search.blur();
    form.requestSubmit();
  };

  const press = (key) => {
    const target = document.activeElement ?? document.body;
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    if (!target.dispatchEvent(event)) return;
    if (key.length === 1 && target.matches(TYPED_IN)) target.value += key;
    if (key === "Enter" && target.matches("a[href], button, summary")) target.click();
  };

  const arrive = async () => {
    const { keys } = left;
    document.dispatchEvent(new CustomEvent("workbench:rows"));
    // A form that a key opens takes the next keys, once it has the focus.
    while (keys.length) {
      press(keys.shift());
      await new Promise((resume) => window.setTimeout(resume, PAUSE));
    }
    left = null;
  };
  const arriveIf = (isThere) => {
    if (left?.timer && isThere(left.form)) {
      const { timer } = left;
      left.timer = null;
      window.clearTimeout(timer);
      arrive();
    }
  };

  // Before all other keys.
  window.addEventListener(
    "keydown",
    (event) => {
      if (!event.isTrusted || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      const isPlain = event.key.length === 1 || event.key === "Enter" || event.key === "Escape";
      const search = event.target.closest?.("[data-search]");
      if (left && isPlain) left.keys.push(event.key);
      else if (search && event.key === "Escape") leave(search);
      else if (search?.form?.hasAttribute("hx-get") && event.key === "Enter") leave(search);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );

  document.addEventListener("htmx:configRequest", (event) => {
    const form = event.target;
    if (!form.matches("form[data-says-empty]")) return;
    for (const [name, value] of [...event.detail.formData]) {
      if (isNothing(form, name, value)) event.detail.formData.delete(name);
    }
    const isPressed = event.detail.triggeringEvent?.submitter;
    if (isShown(form) && !isPressed) {
      event.preventDefault();
      arriveIf(() => true);
    }
  });
  document.addEventListener("htmx:afterSettle", () => arriveIf(isShown));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) arriveIf(() => true);
  });
  // What was said of an action is no news over another list.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.requestConfig?.elt.matches("form[data-says-empty]")) return;
    for (const told of document.querySelectorAll(".alert-success")) told.remove();
  });
})();
