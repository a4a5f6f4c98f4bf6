// Draws the Plotly figures that the page carries as JSON, in the colours of the theme.
(() => {
  "use strict";
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const draw = (element) => {
    const source = document.getElementById(element.dataset.figure);
    if (!source || !window.Plotly) return;
    const figure = JSON.parse(source.textContent);
    const grid = { gridcolor: colour("--wb-border"), zerolinecolor: colour("--wb-border"), linecolor: colour("--wb-border") };
    const layout = Object.assign({}, figure.layout, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--wb-text"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      xaxis: Object.assign({}, figure.layout.xaxis, grid),
      yaxis: Object.assign({}, figure.layout.yaxis, grid),
    });
    const data = figure.data.map((trace) => {
      const name = trace.meta && trace.meta.colour;
      if (!name) return trace;
      const value = colour(name);
      return Object.assign({}, trace, {
        line: Object.assign({}, trace.line, { color: value }),
        marker: Object.assign({}, trace.marker, { color: value }),
      });
    });
    window.Plotly.react(element, data, layout, { displayModeBar: false, responsive: true });
  };
  const drawAll = () => document.querySelectorAll("[data-figure]").forEach(draw);
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("themechange", drawAll);
})();
