// Charts, choices and sorting. Data come from the JSON block; names from the user's file are only ever
// values or text nodes, never field names, HTML or code.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const MINUS = "\u2212";
  const wide = () => window.innerWidth > 640;
  const ticks = () => (wide() ? 10 : 4);

  const short = (text, most = 40) => {
    const signs = Array.from(String(text)); // whole characters, so that no emoji is halved
    return signs.length <= most ? String(text) : signs.slice(0, most - 1).join("") + "\u2026";
  };
  // More digits where a bias would be taken for 0.
  const size = (value) => value > 1e-7 && value < 5e-4 ? String(Number(value.toPrecision(1))) : value.toFixed(3);
  const signed = (value) =>
    value === null ? "\u2013" : (value < 0 ? MINUS : "+") + size(Math.abs(value));
  const digits = (value) => (value === null ? "\u2013" : String(Number(value.toPrecision(3))));
  const whole = (value) => (value === null ? "\u2013" : Math.round(value).toLocaleString("en"));
  const interval = (low, high) => `${signed(low)} to ${signed(high)}`;

  // Colours are CSS variables, so dark mode and print need no second drawing.
  const axis = {
    labelColor: "var(--muted)", titleColor: "var(--ink)", gridColor: "var(--line)",
    domainColor: "var(--muted)", tickColor: "var(--muted)", labelFontSize: 12, titleFontSize: 13,
    titleFontWeight: 500, titlePadding: 8, labelLimit: 140, titleLimit: 420, gridOpacity: 0.7,
  };
  const config = {
    aria: false, background: null, font: "system-ui, sans-serif", axis,
    view: { stroke: null }, text: { color: "var(--ink)", fontSize: 12 },
  };
  const zero = { data: { values: [{}] }, mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { y: { datum: 0 } } };
  const told = [
    { field: "at", title: "at" }, { field: "group", title: "group" },
    { field: "biasText", title: "bias" }, { field: "intervalText", title: "interval" },
    { field: "pText", title: "adjusted p" }, { field: "rowsText", title: "rows nearby" },
  ];
  const drawn = new Map();

  async function draw(id, spec, label) {
    const place = byId(id);
    if (!place) return;
    place.setAttribute("aria-label", label);
    const old = drawn.get(id);
    const turn = (old ? old.turn : 0) + 1;
    drawn.set(id, { turn, view: old && old.view });
    const full = { width: "container", autosize: { type: "fit", contains: "padding" }, config, ...spec };
    const inner = document.createElement("div"); // Vega names its own element; ours keeps its words
    place.replaceChildren(inner);
    const made = await vegaEmbed(inner, full, {
      mode: "vega-lite", actions: false, renderer: "svg", ast: true, tooltip: { theme: "custom" },
    });
    if (drawn.get(id).turn !== turn) { made.finalize(); return; } // a later choice was faster
    if (old && old.view) old.view.finalize();
    drawn.set(id, { turn, view: made });
    place.dataset.drawn = String(turn);
  }

  function table(id, caption, head, rows) {
    const place = byId(id);
    const made = document.createElement("table");
    made.createCaption().textContent = caption;
    const line = made.createTHead().insertRow();
    for (const [name, kind] of head) {
      const cell = document.createElement("th");
      cell.scope = "col";
      if (kind) cell.className = kind;
      const button = document.createElement("button");
      button.type = "button"; button.className = "sort"; button.textContent = name;
      cell.append(button); line.append(cell);
    }
    const body = made.createTBody();
    for (const row of rows) {
      const tr = body.insertRow();
      row.forEach(([text, value], k) => {
        const td = tr.insertCell();
        if (head[k][1]) td.className = head[k][1];
        const part = document.createElement(value === undefined ? "bdi" : "data");
        part.textContent = text;
        if (value !== undefined) part.setAttribute("value", value === null ? "" : value);
        td.append(part);
      });
    }
    place.replaceChildren(made);
    sortable(made);
  }

  function sortable(made) {
    made.querySelectorAll("thead th").forEach((cell, k) => {
      const button = cell.querySelector("button.sort");
      if (!button) return;
      button.addEventListener("click", () => {
        const up = cell.getAttribute("aria-sort") !== "ascending";
        made.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => {
          const own = row.cells[k].querySelector("data");
          if (!own) return row.cells[k].textContent;
          const raw = own.getAttribute("value");
          return raw === "" ? null : Number.isNaN(Number(raw)) ? raw : Number(raw);
        };
        const body = made.tBodies[0];
        const rows = Array.from(body.rows, (row) => [key(row), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null); // no number: last
          const order = typeof a === "number" && typeof b === "number"
            ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
          return up ? order : -order;
        });
        body.append(...rows.map(([, row]) => row));
        byId("live").textContent = `Sorted by ${button.textContent}, ${up ? "ascending" : "descending"}.`;
      });
    });
  }

  function options(select, groups) {
    select.replaceChildren();
    for (const [title, entries] of groups) {
      let parent = select;
      if (title) {
        parent = document.createElement("optgroup");
        parent.label = short(title, 60);
        select.append(parent);
      }
      for (const [value, text] of entries) {
        const option = document.createElement("option");
        option.value = value; option.textContent = short(text, 70); option.title = short(text, 300);
        parent.append(option);
      }
    }
  }

  function reliability() {
    const own = data.reliability;
    const values = own.predicted.map((predicted, k) => ({
      predicted, observed: own.observed[k], lower: own.lower[k], upper: own.upper[k],
      predictedText: predicted.toFixed(3), observedText: own.observed[k].toFixed(3),
      intervalText: `${own.lower[k].toFixed(3)} to ${own.upper[k].toFixed(3)}`,
      rowsText: whole(own.rows[k]),
    }));
    const x = { field: "predicted", type: "quantitative", title: "mean prediction", scale: { domain: [0, 1] }, axis: { tickCount: wide() ? 10 : 5 } };
    const y = { field: "observed", type: "quantitative", title: "observed rate", scale: { domain: [0, 1] }, axis: { tickCount: 5 } };
    const tooltip = [
      { field: "predictedText", title: "predicted" }, { field: "observedText", title: "observed" },
      { field: "intervalText", title: "interval" }, { field: "rowsText", title: "rows" },
    ];
    return draw("chart-reliability", {
      height: 340,
      layer: [
        { data: { values: [{ a: 0, b: 0 }, { a: 1, b: 1 }] },
          mark: { type: "line", color: "var(--muted)", strokeDash: [5, 4], strokeWidth: 1.5 },
          encoding: { x: { field: "a", type: "quantitative" }, y: { field: "b", type: "quantitative" } } },
        { data: { values }, mark: { type: "rule", color: "var(--accent)", strokeWidth: 1.5 },
          encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" } } },
        { data: { values }, mark: { type: "line", color: "var(--accent)", strokeWidth: 1, opacity: 0.5 }, encoding: { x, y } },
        { data: { values }, mark: { type: "point", filled: true, size: 70, opacity: 1, color: "var(--accent)" },
          encoding: { x, y, tooltip } },
      ],
    }, byId("chart-reliability").getAttribute("aria-label"));
  }

  function nullDistribution() {
    const own = data.null;
    if (!own) return null;
    const values = own.counts.map((draws, k) => ({
      from: own.edges[k], to: own.edges[k + 1], draws, base: 0,
      rangeText: `${digits(own.edges[k])} to ${digits(own.edges[k + 1])}`, drawsText: whole(draws),
    }));
    const title = own.combined ? "combined score (largest over all checks)" : "KLCE\u00b2";
    const low = Math.min(own.edges[0], own.observed);
    const top = own.edges[own.edges.length - 1];
    const span = top - own.edges[0];
    const far = own.observed > top + 4 * span; // then the draws would be one thin bar
    const high = far ? top + 1.5 * span : Math.max(top, own.observed);
    const at = Math.min(own.observed, high);
    const right = at > (low + high) / 2;
    const line = [{ at, text: `these labels: ${digits(own.observed)}${far ? ", off the scale \u2192" : ""}` }];
    const tooltip = [{ field: "rangeText", title }, { field: "drawsText", title: "draws" }];
    return draw("chart-null", {
      height: 240,
      layer: [
        { data: { values }, mark: { type: "rect", color: "var(--d1)", stroke: "var(--sheet)", strokeWidth: 0.5 },
          encoding: {
            x: { field: "from", type: "quantitative", title, scale: { domain: [low, high], nice: !far }, axis: { grid: false, tickCount: ticks() } },
            x2: { field: "to" }, y: { field: "draws", type: "quantitative", title: "draws" }, y2: { field: "base" }, tooltip } },
        { data: { values: line }, mark: { type: "rule", color: "var(--bad)", strokeWidth: 2.5 },
          encoding: { x: { field: "at", type: "quantitative" } } },
        { data: { values: line },
          mark: { type: "text", align: right ? "right" : "left", dx: right ? -8 : 8, y: 12, color: "var(--bad)", fontWeight: 600 },
          encoding: { x: { field: "at", type: "quantitative" }, text: { field: "text" } } },
      ],
    }, `Distribution of the ${title} over ${whole(own.draws)} draws, from ${digits(own.edges[0])} to ${digits(own.largest)}; `
      + `the data have ${digits(own.observed)}, which ${whole(own.at_least)} draws reach. The table below has the numbers.`);
  }

  const pointsOf = (part) => part.x.map((x, k) => ({
    x, at: part.at[k], group: short(part.group, 60), bias: part.bias[k], lower: part.lower[k], upper: part.upper[k],
    shown: part.flagged[k] ? "yes" : "no", pvalue: part.pvalue[k], rows: part.neighbours[k],
    biasText: signed(part.bias[k]), intervalText: interval(part.lower[k], part.upper[k]),
    pText: digits(part.pvalue[k]), rowsText: whole(part.neighbours[k]),
  }));
  const filling = {
    condition: { test: "datum.shown === 'yes'", value: "var(--accent)" }, value: "var(--sheet)",
  };
  const spread = (points) => {
    const known = points.filter((point) => point.bias !== null);
    if (!known.length) return "no value anywhere";
    const biases = known.map((point) => point.bias);
    const shown = known.filter((point) => point.shown === "yes").length;
    return `from ${signed(Math.min(...biases))} to ${signed(Math.max(...biases))}; shown to be miscalibrated at ${shown} of ${known.length} points`;
  };
  const biasHead = [["bias", "num"], ["lower", "num"], ["upper", "num"], ["rows nearby", "num"], ["adjusted p", "num"], ["shown to be miscalibrated", ""]];
  const biasCells = (point) => [
    [point.biasText, point.bias], [signed(point.lower), point.lower], [signed(point.upper), point.upper],
    [point.rowsText, point.rows], [point.pText, point.pvalue], [point.shown],
  ];

  function curve(covariate, group) {
    const part = covariate.parts[group];
    const points = pointsOf(part);
    const type = covariate.kind === "date" ? "temporal" : "quantitative";
    const x = { field: "x", type, title: short(covariate.name, 60), scale: type === "temporal" ? { type: "utc" } : { zero: false, nice: false, padding: 8 }, axis: { grid: false, tickCount: ticks() } };
    const y = { field: "bias", type: "quantitative", title: "bias (observed \u2212 predicted)" };
    const layer = [
      { data: { values: points.filter((point) => point.bias !== null) },
        mark: { type: "area", color: "var(--band)", opacity: 0.6 },
        encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" } } },
      zero,
    ];
    if (group !== 0 && covariate.parts[0].by === null) {
      layer.push({ data: { values: pointsOf(covariate.parts[0]) },
        mark: { type: "line", color: "var(--muted)", strokeDash: [5, 4], strokeWidth: 1.5 }, encoding: { x, y } });
    }
    layer.push(
      { data: { values: points }, mark: { type: "line", color: "var(--accent)", strokeWidth: 2.5 }, encoding: { x, y } },
      { data: { values: points.filter((point) => point.bias !== null) },
        mark: { type: "point", size: 48, opacity: 1, stroke: "var(--accent)", strokeWidth: 1.5 },
        encoding: { x, y, fill: filling, tooltip: told } },
    );
    table("table-curve", `Bias along ${short(covariate.name, 60)}, ${short(part.group, 60)}, ${whole(part.rows)} rows`,
      [[short(covariate.name, 40), "num"], ...biasHead],
      points.map((point) => [[point.at, typeof point.x === "number" ? point.x : point.at], ...biasCells(point)]));
    return draw("chart-curve", { height: 320, layer },
      `Bias along ${short(covariate.name, 60)}, ${short(part.group, 60)}: ${spread(points)}. The table below has the numbers.`);
  }

  function levels(own) {
    const points = own.groups.map((part, k) => ({
      place: k, at: short(part.name, 60), group: "\u2013", bias: part.bias, lower: part.lower, upper: part.upper,
      shown: part.pvalue !== null && part.pvalue <= data.alpha ? "yes" : "no", pvalue: part.pvalue, rows: part.rows,
      biasText: signed(part.bias), intervalText: interval(part.lower, part.upper), pText: digits(part.pvalue), rowsText: whole(part.rows),
    })).slice(0, 30);
    const value = { field: "lower", type: "quantitative", title: "bias (observed \u2212 predicted)" };
    const order = points.map((point) => point.at);
    const y = { field: "at", type: "nominal", sort: order, title: null, axis: { grid: true, labelLimit: wide() ? 240 : 110 } };
    const tooltip = told.filter((part) => part.field !== "group").map((part) => part.field === "rowsText" ? { ...part, title: "rows" } : part);
    table("table-curve", `Bias by ${short(own.name, 60)}`, [["group", ""], ...biasHead.map(([name, kind]) => [name === "rows nearby" ? "rows" : name, kind])],
      points.map((point) => [[point.at], ...biasCells(point)]));
    return draw("chart-curve", {
      height: 30 * points.length + 60,
      data: { values: points },
      layer: [
        { data: { values: [{}] }, mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { x: { datum: 0 } } },
        { mark: { type: "rule", color: "var(--accent)", strokeWidth: 2 }, encoding: { y, x: value, x2: { field: "upper" } } },
        { mark: { type: "point", size: 80, opacity: 1, stroke: "var(--accent)", strokeWidth: 1.5 },
          encoding: { y, x: { ...value, field: "bias" }, fill: filling, tooltip } },
      ],
    }, `Bias by ${short(own.name, 60)}: ${spread(points)}. The table below has the numbers.`);
  }

  function curves() {
    const choose = byId("choose-covariate");
    if (!choose) return null;
    const group = byId("choose-group");
    const all = [...data.curves, ...data.groups];
    if (!all.length) { byId("curves").hidden = true; return null; }
    options(choose, [["", all.map((own, k) => [k, own.name])]]);
    const chosen = () => all[Number(choose.value)];
    const show = () => {
      const own = chosen();
      return own.parts ? curve(own, Number(group.value)) : levels(own);
    };
    const fill = (wanted) => {
      const own = chosen();
      const parts = own.parts || [];
      group.disabled = parts.length < 2;
      const sets = new Map();
      parts.forEach((part, k) => {
        const title = part.by === null ? "" : `by ${part.by}`;
        sets.set(title, [...(sets.get(title) || []), [k, part.group]]);
      });
      options(group, parts.length ? [...sets] : [["", [[0, "all groups"]]]]);
      const same = parts.findIndex((part) => part.group === wanted); // keep the group if it is there
      if (same >= 0) group.value = String(same);
    };
    const wanted = () => {
      const part = (chosen().parts || [])[Number(group.value)];
      return part && part.group;
    };
    let last;
    choose.addEventListener("change", () => { fill(last); show(); });
    group.addEventListener("change", () => { last = wanted(); show(); });
    const [first, part] = data.opening.curve;
    if (first < all.length) choose.value = String(first);
    fill((all[first].parts || [])[part]?.group);
    last = wanted();
    return show();
  }

  function map(own) {
    const { across, up } = own;
    const cells = [];
    up.at.forEach((upAt, j) => across.at.forEach((acrossAt, i) => {
      const k = j * across.at.length + i;
      if (own.bias[k] === null) return;
      cells.push({
        acrossAt, upAt, x0: across.edges[i], x1: across.edges[i + 1], y0: up.edges[j], y1: up.edges[j + 1],
        xm: (across.edges[i] + across.edges[i + 1]) / 2, ym: (up.edges[j] + up.edges[j + 1]) / 2,
        bias: own.bias[k], lower: own.lower[k], upper: own.upper[k], shown: own.flagged[k] ? "yes" : "no",
        pvalue: own.pvalue[k], rows: own.neighbours[k], biasText: signed(own.bias[k]),
        intervalText: interval(own.lower[k], own.upper[k]), pText: digits(own.pvalue[k]), rowsText: whole(own.neighbours[k]),
      });
    }));
    const m = data.tolerance;
    const color = {
      field: "bias", type: "quantitative", legend: null,
      scale: { type: "threshold", domain: [-2 * m, -m, -m / 2, m / 2, m, 2 * m], range: [0, 1, 2, 3, 4, 5, 6].map((k) => `var(--d${k})`) },
    };
    const channel = (side, field, low, high, middle) => {
      const title = short(side.name, 50);
      if (side.kind === "level") {
        const place = { field, type: "nominal", sort: side.at, title, axis: { grid: false, labelLimit: wide() ? 160 : 90, labelAngle: 0 }, scale: { padding: 0.03 } };
        return [place, null, place];
      }
      const ends = [side.edges[0], side.edges[side.edges.length - 1]];
      const labels = side.kind === "date" ? { labelExpr: "utcFormat(datum.value * 86400000, '%Y-%m-%d')" } : {};
      const base = { type: "quantitative", title, scale: { domain: ends, nice: false, zero: false }, axis: { grid: false, tickCount: ticks(), ...labels } };
      return [{ ...base, field: low }, { field: high }, { ...base, field: middle }];
    };
    const [x, x2, xm] = channel(across, "acrossAt", "x0", "x1", "xm");
    const [y, y2, ym] = channel(up, "upAt", "y0", "y1", "ym");
    const tooltip = [
      { field: "acrossAt", title: short(across.name, 30) }, { field: "upAt", title: short(up.name, 30) + (across.name === up.name ? " " : "") },
      ...told.slice(2),
    ];
    table("table-map", `Bias over ${short(across.name, 60)} and ${short(up.name, 60)}`,
      [[short(across.name, 40), "num"], [short(up.name, 40), "num"], ...biasHead],
      cells.map((cell) => [[cell.acrossAt, cell.acrossAt], [cell.upAt, cell.upAt], ...biasCells(cell)]));
    return draw("chart-map", {
      height: up.kind === "level" ? 44 * up.at.length + 60 : wide() ? 380 : 280,
      layer: [
        { data: { values: cells }, mark: { type: "rect", strokeWidth: 0.8 },
          encoding: { x, ...(x2 ? { x2 } : {}), y, ...(y2 ? { y2 } : {}), fill: color, stroke: color, tooltip } },
        { data: { values: cells.filter((cell) => cell.shown === "yes") },
          mark: { type: "point", size: wide() ? 14 : 5, opacity: 1, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: wide() ? 0.8 : 0.3, clip: true },
          encoding: { x: xm, y: ym, tooltip } },
      ],
    }, `Map of the bias over ${short(across.name, 60)} and ${short(up.name, 60)}: ${spread(cells)}. The table below has the numbers.`);
  }

  function maps() {
    const choose = byId("choose-map");
    if (!choose) return null;
    options(choose, [["", data.maps.map((own, k) => [k, `${short(own.across.name, 30)} and ${short(own.up.name, 30)}`])]]);
    const show = () => map(data.maps[Number(choose.value)]);
    choose.value = String(data.opening.map);
    choose.addEventListener("change", show);
    return show();
  }

  document.querySelectorAll("main table").forEach(sortable);
  Promise.all([reliability(), nullDistribution(), curves(), maps()])
    .then(() => { document.documentElement.dataset.ready = "yes"; });
})();
