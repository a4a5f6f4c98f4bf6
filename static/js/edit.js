// Beside the field of a file: numbers of its lines, those with problems marked; a problem's button leads to its line, and
// a page with text that is not saved asks before it is left.
(() => {
  "use strict";
  const form = document.getElementById("edit-form");
  const field = document.getElementById("content-field");
  if (!form || !field) return;
  const gutter = form.querySelector(".gutter");
  const begun = field.value;
  let isSent = false;

  const count = () => field.value.split("\n").length;
  const problems = () =>
    new Set([...document.querySelectorAll("[data-goto-line]")].map((button) => Number(button.dataset.gotoLine)));

  const draw = () => {
    const marked = problems();
    gutter.replaceChildren(
      ...Array.from({ length: count() }, (_none, index) => {
        const number = document.createElement("span");
        number.textContent = String(index + 1);
        number.classList.toggle("wrong", marked.has(index + 1));
        return number;
      }),
    );
    follow();
  };
  const follow = () => {
    gutter.scrollTop = field.scrollTop;
  };

  const goTo = (line) => {
    const before = field.value.split("\n").slice(0, line - 1).join("\n").length;
    const start = line > 1 ? before + 1 : 0;
    const end = field.value.indexOf("\n", start);
    field.focus();
    field.setSelectionRange(start, end < 0 ? field.value.length : end);
    field.scrollTop = (field.scrollHeight / count()) * Math.max(0, line - 4);
  };

  field.addEventListener("input", () => {
    if (gutter.childElementCount !== count()) draw();
  });
  field.addEventListener("scroll", follow);
  document.addEventListener("htmx:afterSwap", draw);
  document.addEventListener("click", (event) => {
    const line = event.target.closest("[data-goto-line]")?.dataset.gotoLine;
    if (line) goTo(Number(line));
  });
  form.addEventListener("submit", () => {
    isSent = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isSent && field.value !== begun) event.preventDefault();
  });
  draw();
})();
