// A diff on a page: n and p lead from change to change, files that were viewed are folded and remembered in this browser,
// a click on a line's number opens the form for a note under it, and a selection stays in one half.
(() => {
  "use strict";
  if (window.workbenchDiff) return;
  window.workbenchDiff = true;
  const STORED = `viewed ${location.pathname}`;
  const isTyping = (target) => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog");

  const read = () => {
    try {
      return new Set(JSON.parse(localStorage.getItem(STORED) || "[]"));
    } catch {
      return new Set();
    }
  };
  const keep = (viewed) => {
    try {
      localStorage.setItem(STORED, JSON.stringify([...viewed]));
    } catch {
      // Without storage it holds as long as the page does.
    }
  };

  const files = () => [...document.querySelectorAll(".diff-file[data-digest]")];
  const show = () => {
    const all = files();
    const seen = all.filter((file) => file.querySelector("[data-viewed]").checked);
    const digests = new Set(seen.map((file) => file.dataset.digest));
    for (const item of document.querySelectorAll(".diff-list li[data-digest]")) {
      item.classList.toggle("viewed", digests.has(item.dataset.digest));
    }
    for (const count of document.querySelectorAll("[data-viewed-count]")) count.textContent = `${seen.length}/${all.length} ${count.dataset.viewedCount}`;
  };

  const view = (file, isViewed) => {
    file.querySelector("[data-viewed]").checked = isViewed;
    file.querySelector("details").open = !isViewed;
  };

  const begin = () => {
    const viewed = read();
    for (const element of document.querySelectorAll(".diff-scripted")) element.hidden = false;
    for (const file of files()) if (viewed.has(file.dataset.digest)) view(file, true);
    show();
    unfoldTarget();
  };

  document.addEventListener("change", (event) => {
    if (!event.target.matches(".diff-file [data-viewed]")) return;
    const file = event.target.closest(".diff-file");
    const viewed = read();
    if (event.target.checked) viewed.add(file.dataset.digest);
    else viewed.delete(file.dataset.digest);
    keep(viewed);
    view(file, event.target.checked);
    show();
  });

  // What a link leads to may stand in a file that is folded.
  const unfoldTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target?.closest(".diff-file")?.querySelector("details");
    if (!fold || fold.open) return;
    fold.open = true;
    target.scrollIntoView({ block: "center" });
  };
  window.addEventListener("hashchange", unfoldTarget);

  const step = (by) => {
    const starts = [...document.querySelectorAll(".diff tr.start")].filter((row) => row.closest("details")?.open !== false);
    if (!starts.length) return;
    const at = starts.findIndex((row) => row.classList.contains("current"));
    const middle = window.innerHeight / 2;
    // Without one at hand, from what is on the screen.
    const near = starts.filter((row) => row.getBoundingClientRect().top < middle).length;
    const wanted = at >= 0 ? at + by : by > 0 ? near : near - 1;
    const next = starts[Math.max(0, Math.min(wanted, starts.length - 1))];
    for (const row of starts) row.classList.toggle("current", row === next);
    next.scrollIntoView({ block: "center" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if ((event.key !== "n" && event.key !== "p") || !document.querySelector(".diff tr.start")) return;
    event.preventDefault();
    step(event.key === "n" ? 1 : -1);
  });

  const foldAll = (open) => {
    for (const fold of document.querySelectorAll(".diff-file > details")) fold.open = open;
  };

  // The form for a note on a line, or on a file, comes under it.
  const openForm = (link) => {
    const address = link.closest("[data-comment-address]")?.dataset.commentAddress;
    const file = link.closest(".diff-file");
    if (!address || !file || !window.htmx) return false;
    const anchor = decodeURIComponent(link.hash.slice(1));
    const [, side, line] = /^\d+-(old|new)-(\d+)$/.exec(anchor) || [anchor, "new", "0"];
    const old = document.getElementById(`form-${anchor}`);
    if (old) {
      old.querySelector("textarea")?.focus();
      return true;
    }
    const holder = makeHolder(link, anchor);
    const query = new URLSearchParams({ path: decodeURIComponent(file.dataset.path), side, line });
    window.htmx.ajax("GET", `${address}?${query}`, { target: holder, swap: "innerHTML" }).then(() => {
      // Without an answer, the page that has the form in it.
      if (holder.childElementCount) holder.querySelector("textarea")?.focus();
      else location.assign(link.href);
    });
    return true;
  };
  const makeHolder = (link, anchor) => {
    const row = link.closest("tr");
    const holder = document.createElement(row ? "td" : "div");
    if (!row) {
      holder.id = `form-${anchor}`;
      holder.className = "line-notes";
      link.closest(".diff-file").querySelector(".diff-body").prepend(holder);
      return holder;
    }
    holder.colSpan = 4;
    const under = document.createElement("tr");
    under.className = "notes";
    under.id = `form-${anchor}`;
    under.append(holder);
    row.after(under);
    return holder;
  };

  document.addEventListener("click", (event) => {
    const by = event.target.closest("[data-diff-step]")?.dataset.diffStep;
    if (by) step(Number(by));
    if (event.target.closest("[data-diff-fold]")) foldAll(false);
    if (event.target.closest("[data-diff-unfold]")) foldAll(true);
    const cancel = event.target.closest("[data-cancel-comment]");
    (cancel?.closest("tr.notes") || cancel?.closest(".line-notes"))?.remove();
    const link = event.target.closest("a[data-comment]");
    if (link && !event.ctrlKey && !event.metaKey && openForm(link)) event.preventDefault();
  });

  document.addEventListener("mousedown", (event) => {
    const table = event.target.closest("table.diff.split");
    if (!table) return;
    const isLeft = Boolean(event.target.closest("td.left"));
    table.classList.toggle("select-left", isLeft);
    table.classList.toggle("select-right", !isLeft);
  });

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
