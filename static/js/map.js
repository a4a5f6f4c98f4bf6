// The map of the failures: one point each in the colour of its cluster. A click opens a case; what is drawn around is
// chosen for the buttons over the map; the list beside it shows one cluster alone.
(() => {
  "use strict";
  const root = document.querySelector("[data-map]");
  if (!root) return;
  const plot = root.querySelector(".plot");
  const legend = root.querySelector("[data-legend]");
  const showAll = root.querySelector("[data-show-all]");
  const form = document.querySelector("form[data-bulk]");
  const LABELLED = 30;
  const LISTED = 300;
  // Without WebGL each point is an element of the page.
  const MOST_FLAT = 5000;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => document.documentElement.dataset.bsTheme === "dark";
  // Plotly reads tags in texts.
  const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const hasWebGL = () => {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  };
  let map = null;
  let drag = "lasso";
  // The cluster that is shown alone: its place in the list, -1 for the unclustered, null for all.
  let alone = null;

  // Neighbours in the order of size are far apart in hue; two lightnesses keep a repeated hue apart.
  const colourOf = (place) => {
    if (place < 0) return css("--wb-muted");
    const light = isDark() ? [66, 78] : [42, 56];
    return `hsl(${Math.round((place * 137.508) % 360)}, 62%, ${light[Math.floor(place / 12) % 2]}%)`;
  };

  const traces = (type) => {
    const parts = [
      { shown: (owner) => owner < 0, size: 4, opacity: 0.45 },
      { shown: (owner) => owner >= 0, size: map.ids.length > 5000 ? 5 : 7, opacity: 0.85 },
    ];
    return parts.map((part) => {
      const rows = [...map.owners.keys()].filter((row) => part.shown(map.owners[row]) && (alone === null || map.owners[row] === alone));
      const named = (row) => {
        const cluster = map.clusters[map.owners[row]];
        return cluster ? `#${cluster.number} ${escape(cluster.name.slice(0, 60))}` : escape(root.dataset.unclustered);
      };
      return {
        type,
        mode: "markers",
        x: rows.map((row) => map.x[row]),
        y: rows.map((row) => map.y[row]),
        customdata: rows.map((row) => map.ids[row]),
        text: rows.map((row) => `${escape(map.titles[row])}<br>${named(row)}`),
        hovertemplate: "%{text}<extra></extra>",
        marker: { size: part.size, opacity: part.opacity, color: rows.map((row) => colourOf(map.owners[row])) },
        selected: { marker: { opacity: 1 } },
        unselected: { marker: { opacity: 0.12 } },
      };
    });
  };

  const labels = () =>
    map.clusters
      .map((cluster, place) => ({ cluster, place }))
      .slice(0, LABELLED)
      .filter(({ place }) => alone === null || alone === place)
      .map(({ cluster }) => ({
        x: cluster.x,
        y: cluster.y,
        text: `#${cluster.number}`,
        showarrow: false,
        font: { size: 11, color: css("--wb-text") },
        bgcolor: css("--wb-surface"),
        opacity: 0.8,
        borderpad: 1,
      }));

  const layout = () => {
    const axis = { visible: false, range: [-1.06, 1.06], zeroline: false };
    return {
      margin: { l: 0, r: 0, t: 0, b: 0 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: css("--wb-text"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      showlegend: false,
      dragmode: drag,
      hovermode: "closest",
      hoverlabel: { bgcolor: css("--wb-surface"), bordercolor: css("--wb-border"), font: { color: css("--wb-text") }, align: "left" },
      xaxis: axis,
      yaxis: { ...axis, scaleanchor: "x" },
      annotations: labels(),
      newselection: { line: { color: css("--wb-accent"), width: 1.5 } },
    };
  };

  const choose = (ids) => {
    if (!form) return;
    let field = form.querySelector("input[name=ids]");
    if (!field) {
      field = document.createElement("input");
      field.type = "hidden";
      field.name = "ids";
      form.append(field);
    }
    field.value = ids.join(",");
    form.querySelector("output[data-chosen]").value = ids.length;
  };

  const draw = async () => {
    const type = hasWebGL() ? "scattergl" : "scatter";
    const config = { displayModeBar: false, responsive: true, scrollZoom: true, doubleClick: "reset" };
    await window.Plotly.react(plot, traces(type), layout(), config);
    choose([]);
  };

  const openCase = (event) => {
    const point = event.points[0];
    if (!point) return;
    const address = root.dataset.case.replace("/0/", `/${point.customdata}/`);
    if (event.event && (event.event.ctrlKey || event.event.metaKey)) window.open(address, "_blank", "noopener");
    else window.location.assign(address);
  };

  const listEntry = (place, name, size) => {
    const entry = document.createElement("li");
    const button = document.createElement("button");
    const dot = document.createElement("span");
    const count = document.createElement("span");
    button.type = "button";
    button.dataset.place = place;
    button.setAttribute("aria-pressed", String(alone === place));
    dot.className = "dot";
    dot.style.background = colourOf(place);
    count.className = "muted num";
    count.textContent = size;
    const text = document.createElement("span");
    text.className = "wrap";
    text.textContent = name;
    button.append(dot, text, count);
    entry.append(button);
    if (place >= 0) {
      const link = document.createElement("a");
      link.href = root.dataset.cluster.replace("/0/", `/${map.clusters[place].number}/`);
      link.textContent = "→";
      link.setAttribute("aria-label", name);
      entry.append(link);
    }
    return entry;
  };

  const list = () => {
    const loose = map.owners.filter((owner) => owner < 0).length;
    const entries = map.clusters.slice(0, LISTED).map((cluster, place) => listEntry(place, `#${cluster.number} ${cluster.name}`, cluster.size));
    if (loose) entries.push(listEntry(-1, root.dataset.unclustered, loose));
    legend.replaceChildren(...entries);
    showAll.hidden = alone === null;
  };

  const say = (text) => {
    const line = document.createElement("p");
    line.className = "muted";
    line.textContent = text;
    plot.before(line);
  };

  const thin = () => {
    if (hasWebGL() || map.ids.length <= MOST_FLAT) return;
    const step = Math.ceil(map.ids.length / MOST_FLAT);
    for (const name of ["ids", "x", "y", "titles", "owners"]) map[name] = map[name].filter((_value, row) => row % step === 0);
    say(root.dataset.flat);
  };

  const begin = async () => {
    try {
      const answer = await fetch(root.dataset.map, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      map = await answer.json();
    } catch {
      plot.querySelector(".loading")?.remove();
      say(root.dataset.failed);
      return;
    }
    plot.querySelector(".loading")?.remove();
    thin();
    list();
    await draw();
    plot.on("plotly_click", openCase);
    plot.on("plotly_selected", (event) => choose(event ? event.points.map((point) => point.customdata) : []));
    plot.on("plotly_deselect", () => choose([]));
    plot.dataset.ready = "true";
  };

  legend.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-place]");
    if (!button) return;
    const place = Number(button.dataset.place);
    alone = alone === place ? null : place;
    list();
    legend.querySelector(`[data-place="${place}"]`)?.focus();
    draw();
  });
  showAll.addEventListener("click", () => {
    alone = null;
    list();
    draw();
  });
  root.addEventListener("click", (event) => {
    const wanted = event.target.closest("[data-drag]")?.dataset.drag;
    if (!wanted || !map) return;
    if (wanted === "reset") {
      draw();
      return;
    }
    drag = wanted;
    for (const button of root.querySelectorAll("[data-drag][aria-pressed]")) button.setAttribute("aria-pressed", String(button.dataset.drag === drag));
    window.Plotly.relayout(plot, { dragmode: drag });
  });
  document.addEventListener("themechange", () => {
    if (!map) return;
    list();
    draw();
  });
  document.addEventListener("DOMContentLoaded", begin);
})();
