// Links with data-copy-from: what they lead to is copied instead, and the link says so. Without a clipboard they lead there.
(() => {
  "use strict";
  const copy = async (text) => {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return;
    }
    // Plain http: the old way, by a field that nobody sees.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "off-screen";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("not copied");
  };

  const say = (link, words) => {
    const before = link.textContent;
    const icon = link.querySelector("svg");
    link.textContent = words;
    link.setAttribute("role", "status");
    window.setTimeout(() => {
      link.textContent = before.trim();
      if (icon) link.prepend(icon, " ");
      link.removeAttribute("role");
    }, 1500);
  };

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-copy-from]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(String(answer.status));
      await copy(await answer.text());
      say(link, link.dataset.copied || "✓");
    } catch {
      window.location.assign(link.href);
    }
  });
})();
