// Charts, choices, sorting, saving and printing. Data come from the JSON block; names from the user's file
// are only ever values or text nodes. They are never field names, keys, HTML or code: the chart
// library writes titles of tooltips and orders of categories into expressions and looks up titles of axes in an object,
// so tooltips are ours, categories are drawn by number, and titles are parameters.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const MINUS = "\u2212";
  const wide = () => window.innerWidth > 640;
  const ticks = () => (wide() ? 10 : 4);

  const BLANK = /^[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u2800\u3164\uffa0]*$/; // as in _core/text.py
  // Beginning and end: what tells `region = south` from `region = west` stands at the end.
  const short = (text, most = 40) => {
    if (BLANK.test(text)) return "(no name)";
    const signs = signsOf(text);
    if (signs.length <= most) return String(text);
    const tail = Math.floor((most - 1) * 0.45);
    return `${signs.slice(0, most - 1 - tail).join("")}\u2026${signs.slice(signs.length - tail).join("")}`;
  };
  const signsOf = (text) => Array.from(SIGNS.segment(String(text)), (sign) => sign.segment); // no emoji or accent is halved
  const SIGNS = new Intl.Segmenter("en", { granularity: "grapheme" });
  // One line, or two of which the first ends between words where it can.
  const inLines = (text, most) => {
    const signs = signsOf(short(text, 2 * most - 12)); // room to end between words
    if (signs.length <= most) return [signs.join("")];
    const from = signs.length - most;
    const ends = signs.slice(from, most + 1).map((sign, k) => (/[\s_=,;:/-]/.test(sign) ? from + k : -1)).filter((at) => at > 0);
    const at = ends.length ? ends[ends.length - 1] + (ends[ends.length - 1] < most ? 1 : 0) : most;
    return [signs.slice(0, at).join(""), signs.slice(at).join("")];
  };
  // Names that look the same in a list are numbered from the second on.
  const distinct = (texts) => {
    const seen = new Map();
    return texts.map((text) => {
      const look = text.normalize("NFC").replace(/\s+/g, " ").trim();
      seen.set(look, (seen.get(look) || 0) + 1);
      return seen.get(look) === 1 ? text : `${text} (${seen.get(look)})`;
    });
  };
  // More digits where a bias would be taken for 0.
  const size = (value) => value > 1e-7 && value < 5e-4 ? String(Number(value.toPrecision(1))) : value.toFixed(3);
  const signed = (value) =>
    value === null ? "\u2013" : (value < 0 ? MINUS : "+") + size(Math.abs(value));
  const rate = (value) => (value === null ? "\u2013" : value.toFixed(3));
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
  const BIAS = "bias (observed \u2212 predicted)";
  const zero = { data: { values: [{}] }, mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { y: { datum: 0 } } };
  const drawn = new Map();

  // Words beside the pointer: a mark with `tooltip: TIP` shows the pairs in `tip` of its row, as text.
  const TIP = { content: "data" };
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  const showTip = (_, event, item, row) => {
    tip.hidden = !row;
    if (!row) return;
    tip.replaceChildren(...row.tip.flatMap(([name, text]) => [["span", name], ["bdi", text]]).map(([tag, text]) => {
      const made = document.createElement(tag);
      made.textContent = text;
      return made;
    }));
    const beside = (at, own, room) => Math.max(4, at + 14 + own > room ? at - 14 - own : at + 14);
    tip.style.left = `${beside(event.clientX, tip.offsetWidth, document.documentElement.clientWidth)}px`;
    tip.style.top = `${beside(event.clientY, tip.offsetHeight, window.innerHeight)}px`;
  };
  const tipOf = (row, rows = "rows") => [["bias", row.biasText], ["interval", row.intervalText], ["adjusted p", row.pText], [rows, row.rowsText]];

  // Positions of categories are numbers. Their names, and titles of axes, are parameters of the chart.
  const named = (param, names) => ({ name: param, value: names });
  const titled = (param) => ({ title: { expr: `${param}Title` } });
  const titleOf = (param, name, most) => named(`${param}Title`, inLines(name, most));
  const byNumber = (field, param, count, axis, scale) => ({
    field, type: "ordinal", scale: { domain: [...Array(count).keys()], ...scale }, axis: axis && { labelExpr: `${param}[datum.value]`, ...axis },
  });

  // The one way to say "shown to be miscalibrated": a filled triangle that points to the side of the bias.
  const stateOf = (flagged, bias) => (!flagged ? "not" : bias > 0 ? "low" : "high");
  const STATES = ["low", "high", "not"];
  const SAID = { low: "yes, too low", high: "yes, too high", not: "no" };
  const scaled = (range) => ({ field: "state", type: "nominal", legend: null, scale: { domain: STATES, range } });
  const marks = {
    shape: scaled(["triangle-up", "triangle-down", "circle"]),
    fill: scaled(["var(--low)", "var(--high)", "var(--sheet)"]),
    stroke: scaled(["var(--low)", "var(--high)", "var(--muted)"]),
  };
  const state = (flagged, bias) => {
    const own = stateOf(flagged, bias);
    return { state: own, shown: SAID[own] };
  };

  // Stretches without a gap, numbered: neither line nor band is drawn from one to the next.
  const inRuns = (points, known) => {
    let run = 0;
    const kept = [];
    points.forEach((point) => {
      if (known(point)) kept.push({ ...point, run }); else run += 1;
    });
    const sizes = new Map();
    kept.forEach((point) => sizes.set(point.run, (sizes.get(point.run) || 0) + 1));
    return kept.map((point) => ({ ...point, alone: sizes.get(point.run) === 1 }));
  };
  const hasBand = (point) => point.lower !== null && point.upper !== null;
  const hasBias = (point) => point.bias !== null;

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
      mode: "vega-lite", actions: false, renderer: "svg", ast: true, tooltip: showTip,
    });
    if (drawn.get(id).turn !== turn) { made.finalize(); return; } // a later choice was faster
    if (old && old.view) old.view.finalize();
    drawn.set(id, { turn, view: made });
    place.dataset.drawn = String(turn);
  }

  function table(name, caption, head, rows) {
    const place = byId(`place-${name}`);
    if (!place) return;
    const made = document.createElement("table");
    made.id = `table-${name}`;
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
      const texts = distinct(entries.map(([, text]) => short(text, wide() ? 60 : 36)));
      entries.forEach(([value, text], k) => {
        const option = document.createElement("option");
        option.value = value; option.textContent = texts[k]; option.title = short(text, 300);
        parent.append(option);
      });
    }
  }

  // Predictions and rates on the same axes, from 0 to 1 or, where all are small or all large, to a round end.
  function square(curves) {
    const all = curves.flatMap((own) => [own.predicted, own.lower, own.upper, own.observed].flat()).filter((value) => value !== null);
    if (data.histogram) all.push(data.histogram.edges[0], data.histogram.edges[data.histogram.edges.length - 1]);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const step = (wanted) => {
      const span = Math.max(wanted, 1e-6);
      return [1, 2, 5, 10].map((k) => k * 10 ** Math.floor(Math.log10(span))).find((k) => k >= span * (1 - 1e-9)) / 10;
    };
    if (high < 0.5) return [0, Math.min(1, Math.ceil(high / step(high)) * step(high))];
    if (low > 0.5) return [Math.max(0, 1 - Math.ceil((1 - low) / step(1 - low)) * step(1 - low)), 1];
    return [0, 1];
  }

  const binsOf = (own, name = "") => own.predicted.map((predicted, k) => ({
    name, predicted, observed: own.observed[k], lower: own.lower[k], upper: own.upper[k], rows: own.rows[k],
    predictedText: rate(predicted), observedText: rate(own.observed[k]),
    intervalText: `${rate(own.lower[k])} to ${rate(own.upper[k])}`, rowsText: whole(own.rows[k]),
  })).map((bin) => ({
    ...bin, tip: [["rows of", bin.name], ["predicted", bin.predictedText], ["observed", bin.observedText], ["interval", bin.intervalText], ["rows", bin.rowsText]],
  }));
  const binsHead = [["predicted", "num"], ["observed", "num"], ["lower", "num"], ["upper", "num"], ["rows", "num"]];
  const binsCells = (bin) => [...["predicted", "observed", "lower", "upper"].map((key) => [rate(bin[key]), bin[key]]), [bin.rowsText, bin.rows]];
  const SIDE = 52; // pixels of a vertical axis, so that the histogram stands below the curve

  function reliabilityLayers(values, before, domain) {
    const x = { field: "predicted", type: "quantitative", title: "mean prediction", scale: { domain, nice: false }, axis: { tickCount: wide() ? 10 : 5 } };
    const y = { field: "observed", type: "quantitative", title: "observed rate", scale: { domain, nice: false }, axis: { tickCount: 5, minExtent: SIDE, maxExtent: SIDE } };
    const layer = [
      { data: { values: domain.map((end) => ({ a: end })) },
        mark: { type: "line", color: "var(--muted)", strokeDash: [2, 3], strokeWidth: 1.5 },
        encoding: { x: { field: "a", type: "quantitative" }, y: { field: "a", type: "quantitative" } } },
    ];
    if (before) {
      layer.push(
        { data: { values: before }, mark: { type: "line", color: "var(--muted)", strokeDash: [6, 4], strokeWidth: 1.5 }, encoding: { x, y } },
        { data: { values: before }, mark: { type: "point", size: 60, opacity: 1, stroke: "var(--muted)", fill: "var(--sheet)", strokeWidth: 1.5, tooltip: TIP }, encoding: { x, y } });
    }
    layer.push(
      { data: { values: values.filter(hasBand) }, mark: { type: "rule", color: "var(--ink)", strokeWidth: 1.5 }, encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" } } },
      { data: { values }, mark: { type: "line", color: "var(--ink)", strokeWidth: 1.2, opacity: 0.6 }, encoding: { x, y } },
      { data: { values }, mark: { type: "point", filled: true, size: 70, opacity: 1, color: "var(--ink)", tooltip: TIP }, encoding: { x, y } });
    return layer;
  }

  function reliability() {
    const lines = data.reliability_by_group;
    const choose = byId("choose-reliability");
    const domain = square([data.reliability, ...lines.map((line) => line.curve)]);
    const all = binsOf(data.reliability, "all");
    const show = () => {
      const line = choose && lines[Number(choose.value)];
      if (line) table("group-bins", `Observed rate by bin of the prediction, ${short(line.group, 60)}, with intervals of 95 % each`, binsHead, binsOf(line.curve).map(binsCells));
      else byId("place-group-bins").replaceChildren();
      byId("chart-reliability").dataset.table = line ? "table-group-bins" : "table-reliability"; // what is saved
      const words = line ? `${short(line.group, 60)}, ${whole(line.rows)} rows; dashed: all rows` : "all rows; the table below has the numbers";
      return draw("chart-reliability", { height: 340, layer: reliabilityLayers(line ? binsOf(line.curve, short(line.group, 60)) : all, line ? all : null, domain) },
        `Observed rate against mean prediction in bins of equal weight: ${words}`);
    };
    if (choose) {
      const sets = new Map([["", [[-1, "all rows"]]]]);
      lines.forEach((line, k) => {
        const title = `by ${line.by}`;
        sets.set(title, [...(sets.get(title) || []), [k, line.group]]);
      });
      options(choose, [...sets]);
      choose.addEventListener("change", show);
    }
    return Promise.all([show(), histogram(domain)]);
  }

  function histogram(domain) {
    const own = data.histogram;
    if (!own) return null;
    const widths = own.counts.map((_, k) => own.edges[k + 1] - own.edges[k]);
    const usual = Math.min(...widths); // bars that were joined are as low as their parts on average
    const values = own.counts.map((rows, k) => ({
      from: own.edges[k], to: own.edges[k + 1], rows: (rows * usual) / widths[k], base: 0,
      tip: [["prediction", `${digits(own.edges[k])} to ${digits(own.edges[k + 1])}`], ["rows", whole(rows)]],
    }));
    return draw("chart-histogram", {
      height: 90,
      data: { values }, mark: { type: "rect", color: "var(--bar)", stroke: "var(--sheet)", strokeWidth: 0.5, tooltip: TIP },
      encoding: {
        x: { field: "from", type: "quantitative", title: "prediction, all rows", scale: { domain, nice: false }, axis: { grid: false, tickCount: wide() ? 10 : 5 } },
        x2: { field: "to" }, y: { field: "rows", type: "quantitative", title: "rows", axis: { tickCount: 3, minExtent: SIDE, maxExtent: SIDE } }, y2: { field: "base" },
      },
    }, `Number of rows by prediction, from ${digits(own.edges[0])} to ${digits(own.edges[own.edges.length - 1])}; the table below has the numbers`);
  }

  function nullDistribution() {
    const own = data.null;
    if (!own) return null;
    const title = own.combined ? "combined score (largest over all checks)" : "KLCE\u00b2";
    const values = own.counts.map((draws, k) => ({
      from: own.edges[k], to: own.edges[k + 1], draws, base: 0,
      tip: [[title, `${digits(own.edges[k])} to ${digits(own.edges[k + 1])}`], ["draws", whole(draws)]],
    }));
    const low = Math.min(own.edges[0], own.observed);
    const top = own.edges[own.edges.length - 1];
    const span = top - own.edges[0];
    const far = own.observed > top + 4 * span; // then the draws would be one thin bar
    const high = far ? top + 1.5 * span : Math.max(top, own.observed);
    const at = Math.min(own.observed, high);
    const right = at > (low + high) / 2;
    const line = [{ at, text: `these labels: ${digits(own.observed)}${far ? ", off the scale \u2192" : ""}` }];
    return draw("chart-null", {
      height: 240,
      layer: [
        { data: { values }, mark: { type: "rect", color: "var(--bar)", stroke: "var(--sheet)", strokeWidth: 0.5, tooltip: TIP },
          encoding: {
            x: { field: "from", type: "quantitative", title, scale: { domain: [low, high], nice: !far }, axis: { grid: false, tickCount: ticks() } },
            x2: { field: "to" }, y: { field: "draws", type: "quantitative", title: "draws" }, y2: { field: "base" } } },
        { data: { values: line }, mark: { type: "rule", color: "var(--ink)", strokeWidth: 2.5 },
          encoding: { x: { field: "at", type: "quantitative" } } },
        { data: { values: line },
          mark: { type: "text", align: right ? "right" : "left", dx: right ? -8 : 8, y: 12, color: "var(--ink)", fontWeight: 600 },
          encoding: { x: { field: "at", type: "quantitative" }, text: { field: "text" } } },
      ],
    }, `Distribution of the ${title} over ${whole(own.draws)} draws, from ${digits(own.edges[0])} to ${digits(own.largest)}; `
      + `the data have ${digits(own.observed)}, which ${whole(own.at_least)} draws reach. The table below has the numbers.`);
  }

  // A chart of intervals, one a row; on a narrow screen names stand above their intervals.
  function intervals(id, rows, label) {
    const { tolerance } = data;
    const beside = wide();
    const names = distinct(rows.map((row) => short(row.name, beside ? 86 : 80))).map((name) => inLines(name, beside ? 48 : 44));
    const lines = Math.max(...names.map((own) => own.length));
    const values = rows.map((row, k) => ({ ...row, k, label: names[k].join("\n"), lines: names[k].length, tip: [["", short(row.name, 300)], ...tipOf(row)] }));
    const ends = values.flatMap((row) => [row.lower, row.upper]).filter((end) => end !== null);
    const [low, high] = [Math.min(...ends, -1.2 * tolerance), Math.max(...ends, 1.2 * tolerance)];
    const room = 0.03 * (high - low);
    const x = { field: "lower", type: "quantitative", title: BIAS, scale: { domain: [low - room, high + room], nice: false }, axis: { tickCount: wide() ? 8 : 5 } };
    const y = byNumber("k", "names", rows.length, beside ? { grid: false, domain: false, ticks: false, title: null, labelLimit: 360, labelLineHeight: 13, labelColor: "var(--ink)",
      labelBaseline: { condition: { test: "length(names[datum.value]) > 1", value: "bottom" }, value: "middle" } } : null, { paddingOuter: 0.3 });
    const shade = [{ from: -tolerance, to: tolerance }];
    const offset = beside ? 0 : 9;
    const step = beside ? 23 + 5 * lines : 30 + 15 * lines;
    return draw(id, {
      height: step * values.length + 60,
      params: [named("names", names)],
      data: { values },
      layer: [
        { data: { values: shade }, mark: { type: "rect", color: "var(--soft)" }, encoding: { x: { field: "from", type: "quantitative" }, x2: { field: "to" } } },
        { data: { values: [{}] }, mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { x: { datum: 0 } } },
        { data: { values: values.filter(hasBand) }, mark: { type: "rule", strokeWidth: 2, yOffset: offset }, encoding: { y, x, x2: { field: "upper" }, color: marks.stroke } },
        { mark: { type: "point", size: 90, opacity: 1, strokeWidth: 1.5, yOffset: offset, tooltip: TIP }, encoding: { y, x: { ...x, field: "bias" }, ...marks } },
        ...(beside ? [] : [1, 2].map((count) => ({ // so that the last line stands just above the interval
          data: { values: values.filter((row) => row.lines === count) },
          mark: { type: "text", align: "left", baseline: "bottom", lineBreak: "\n", lineHeight: 14, x: 0, dy: 2 - 14 * (count - 1), limit: { expr: "width" } },
          encoding: { y, text: { field: "label" } },
        }))),
      ],
    }, label);
  }

  const rowOf = (name, part, flagged, rowsText) => ({
    name, bias: part.bias, lower: part.lower, upper: part.upper, pvalue: part.pvalue, rows: part.rows, rowsText,
    biasText: signed(part.bias), intervalText: interval(part.lower, part.upper), pText: digits(part.pvalue), ...state(flagged, part.bias),
  });

  function forest() {
    const rows = data.forest.rows.map((part) => rowOf(part.name, part, part.shown,
      part.kind === "slice" ? `judged on ${whole(part.judged_on)} of ${whole(part.rows)}` : whole(part.rows)));
    if (!rows.length) return null;
    return intervals("chart-forest", rows, `Bias of groups and of confirmed slices: ${spread(rows, "rows")}. The tables below have the numbers.`);
  }

  const pointsOf = (part) => part.x.map((x, k) => ({
    x, at: part.at[k], group: short(part.group, 60), bias: part.bias[k], lower: part.lower[k], upper: part.upper[k],
    ...state(part.flagged[k], part.bias[k]), pvalue: part.pvalue[k], rows: part.neighbours[k],
    biasText: signed(part.bias[k]), intervalText: interval(part.lower[k], part.upper[k]),
    pText: digits(part.pvalue[k]), rowsText: whole(part.neighbours[k]),
  })).map((point) => ({ ...point, tip: [["at", point.at], ["group", point.group], ...tipOf(point, "rows nearby")] }));
  const spread = (points, what = "points") => {
    const known = points.filter(hasBias);
    if (!known.length) return "no value anywhere";
    const biases = known.map((point) => point.bias);
    const shown = known.filter((point) => point.state !== "not").length;
    return `from ${signed(Math.min(...biases))} to ${signed(Math.max(...biases))}; shown to be miscalibrated at ${shown} of ${known.length} ${what}`;
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
    const x = { field: "x", type, scale: type === "temporal" ? { type: "utc" } : { zero: false, nice: false, padding: 8 }, axis: { grid: false, tickCount: ticks(), ...titled("x") } };
    const y = { field: "bias", type: "quantitative", title: BIAS };
    const detail = { field: "run", type: "nominal" };
    const banded = inRuns(points, hasBand);
    const layer = [ // a point between two gaps has a rule for a band
      { data: { values: banded.filter((point) => !point.alone) }, mark: { type: "area", color: "var(--band)", opacity: 0.75 },
        encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" }, detail } },
      { data: { values: banded.filter((point) => point.alone) }, mark: { type: "rule", color: "var(--band)", strokeWidth: 3 },
        encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" } } },
      zero,
    ].filter((part) => part.data.values.length);
    if (group !== 0 && covariate.parts[0].by === null) {
      layer.push({ data: { values: inRuns(pointsOf(covariate.parts[0]), hasBias) },
        mark: { type: "line", color: "var(--muted)", strokeDash: [5, 4], strokeWidth: 1.5 }, encoding: { x, y, detail } });
    }
    layer.push(
      { data: { values: inRuns(points, hasBias) }, mark: { type: "line", color: "var(--ink)", strokeWidth: 1.8 }, encoding: { x, y, detail } },
      { data: { values: points.filter(hasBias) }, mark: { type: "point", size: 56, opacity: 1, strokeWidth: 1.3, tooltip: TIP },
        encoding: { x, y, ...marks } },
    );
    table("curve", `Bias along ${short(covariate.name, 60)}, ${short(part.group, 60)}, ${whole(part.rows)} rows`,
      [[short(covariate.name, 40), "num"], ...biasHead],
      points.map((point) => [[point.at, typeof point.x === "number" ? point.x : point.at], ...biasCells(point)]));
    return draw("chart-curve", { height: 320, params: [titleOf("x", covariate.name, wide() ? 80 : 36)], layer },
      `Bias along ${short(covariate.name, 60)}, ${short(part.group, 60)}: ${spread(points)}. The table below has the numbers.`);
  }

  const levelRows = (own) => own.groups.slice(0, 30).map((part) =>
    rowOf(part.name, part, part.pvalue !== null && part.pvalue <= data.alpha, whole(part.rows)));

  function levels(own) {
    const rows = levelRows(own);
    table("curve", `Bias by ${short(own.name, 60)}`, [["group", ""], ...biasHead.map(([name, kind]) => [name === "rows nearby" ? "rows" : name, kind])],
      rows.map((row) => [[row.name], ...biasCells(row)]));
    return intervals("chart-curve", rows, `Bias by ${short(own.name, 60)}: ${spread(rows, "groups")}. The table below has the numbers.`);
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

  const cellsOf = (own) => {
    const { across, up } = own;
    const cells = [];
    up.at.forEach((upAt, j) => across.at.forEach((acrossAt, i) => {
      const k = j * across.at.length + i;
      if (own.bias[k] === null) return;
      cells.push({
        i, j, acrossAt, upAt, x0: across.edges[i], x1: across.edges[i + 1], y0: up.edges[j], y1: up.edges[j + 1],
        xm: (across.edges[i] + across.edges[i + 1]) / 2, ym: (up.edges[j] + up.edges[j + 1]) / 2,
        bias: own.bias[k], lower: own.lower[k], upper: own.upper[k], ...state(own.flagged[k], own.bias[k]),
        pvalue: own.pvalue[k], rows: own.neighbours[k], biasText: signed(own.bias[k]),
        intervalText: interval(own.lower[k], own.upper[k]), pText: digits(own.pvalue[k]), rowsText: whole(own.neighbours[k]),
      });
    }));
    return cells.map((cell) => ({
      ...cell, tip: [[short(across.name, 60), cell.acrossAt], [short(up.name, 60), cell.upAt], ...tipOf(cell, "rows nearby")],
    }));
  };
  const levelNames = (side) => distinct(side.at.map((at) => short(at, 60)));
  const STEPS = [-2, -1, -0.5, 0.5, 1, 2].map((times) => times * data.tolerance);

  function map(own) {
    const { across, up } = own;
    const cells = cellsOf(own);
    const color = {
      field: "bias", type: "quantitative", legend: null,
      scale: { type: "threshold", domain: STEPS, range: [0, 1, 2, 3, 4, 5, 6].map((k) => `var(--d${k})`) },
    };
    // Strong colours are dark on light ground and light on dark: paper stands out from both.
    const contrast = { condition: { test: `abs(datum.bias) >= ${data.tolerance}`, value: "var(--paper)" }, value: "var(--ink)" };
    const channel = (side, param, field, low, high, middle) => {
      if (side.kind === "level") {
        const axis = { grid: false, ...titled(param), labelLimit: wide() ? 160 : 90, labelAngle: 0 };
        const place = byNumber(field, param, side.at.length, axis, { padding: 0.03 });
        return [place, null, place];
      }
      const ends = [side.edges[0], side.edges[side.edges.length - 1]];
      const labels = side.kind === "date" ? { labelExpr: "utcFormat(datum.value * 86400000, '%Y-%m-%d')" } : {};
      const base = { type: "quantitative", scale: { domain: ends, nice: false, zero: false }, axis: { grid: false, tickCount: ticks(), ...titled(param), ...labels } };
      return [{ ...base, field: low }, { field: high }, { ...base, field: middle }];
    };
    const [x, x2, xm] = channel(across, "across", "i", "x0", "x1", "xm");
    const [y, y2, ym] = channel(up, "up", "j", "y0", "y1", "ym");
    table("map", `Bias over ${short(across.name, 60)} and ${short(up.name, 60)}`,
      [[short(across.name, 40), "num"], [short(up.name, 40), "num"], ...biasHead],
      cells.map((cell) => [[cell.acrossAt, cell.acrossAt], [cell.upAt, cell.upAt], ...biasCells(cell)]));
    return draw("chart-map", {
      height: up.kind === "level" ? 44 * up.at.length + 60 : wide() ? 380 : 280,
      params: [named("across", levelNames(across)), named("up", levelNames(up)), titleOf("across", across.name, wide() ? 80 : 32), titleOf("up", up.name, wide() ? 44 : 32)],
      layer: [
        { data: { values: cells }, mark: { type: "rect", strokeWidth: 0.8, tooltip: TIP },
          encoding: { x, ...(x2 ? { x2 } : {}), y, ...(y2 ? { y2 } : {}), fill: color, stroke: color } },
        { data: { values: cells.filter((cell) => cell.state !== "not") },
          mark: { type: "point", size: wide() ? 30 : 14, opacity: 1, strokeWidth: 0, clip: true, tooltip: TIP },
          encoding: { x: xm, y: ym, shape: marks.shape, fill: contrast } },
      ],
    }, `Map of the bias over ${short(across.name, 60)} and ${short(up.name, 60)}: ${spread(cells)}. The table below has the numbers.`);
  }

  function maps() {
    const choose = byId("choose-map");
    if (!choose) return null;
    options(choose, [["", data.maps.map((own, k) => [k, `${short(own.across.name, wide() ? 30 : 15)} and ${short(own.up.name, wide() ? 30 : 15)}`])]]);
    const show = () => map(data.maps[Number(choose.value)]);
    choose.value = String(data.opening.map);
    choose.addEventListener("change", show);
    return show();
  }

  function recalibrations() {
    const choose = byId("choose-recalibration");
    if (!choose) return null;
    const [before, ...methods] = data.recalibrations;
    const measures = [["ece", "ECE"], ["smooth_ece", "smooth ECE"]];
    const rows = methods.flatMap((own) => measures.map(([key, name]) => ({
      name: `${short(own.name, 30)}: ${name}`, before: before[key], after: own[key], beforeText: digits(before[key]), afterText: digits(own[key]),
    })));
    const values = rows.map((row, k) => ({ ...row, k, tip: [["", row.name], ["before", row.beforeText], ["after", row.afterText]] }));
    const x = { field: "before", type: "quantitative", title: "calibration error", axis: { tickCount: wide() ? 8 : 4 } };
    const y = byNumber("k", "names", values.length, { title: null, labelLimit: wide() ? 240 : 130, ticks: false, domain: false });
    const errors = draw("chart-errors", {
      height: 26 * values.length + 50, params: [named("names", distinct(values.map((row) => row.name)))], data: { values },
      layer: [
        { mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { y, x, x2: { field: "after" } } },
        { mark: { type: "point", size: 80, opacity: 1, stroke: "var(--muted)", fill: "var(--sheet)", strokeWidth: 1.5, tooltip: TIP }, encoding: { y, x } },
        { mark: { type: "point", filled: true, size: 80, opacity: 1, color: "var(--ink)", tooltip: TIP }, encoding: { y, x: { ...x, field: "after" } } },
      ],
    }, `Calibration errors before and after recalibration: ${values.map((row) => `${row.name} ${row.beforeText} before, ${row.afterText} after`).join("; ")}`);
    const domain = square(data.recalibrations.map((own) => own.curve));
    options(choose, [["", methods.map((own, k) => [k + 1, own.name])]]);
    const show = () => {
      const own = data.recalibrations[Number(choose.value)];
      const [was, is] = [binsOf(before.curve, "before"), binsOf(own.curve, "after")];
      table("recalibrated", `Reliability before and after ${short(own.name, 60)}, in bins of equal weight`,
        [["which", ""], ...binsHead], [...was, ...is].map((bin) => [[bin.name], ...binsCells(bin)]));
      return draw("chart-recalibration", { height: 320, layer: reliabilityLayers(is, was, domain) },
        `Observed rate against mean prediction before and after ${short(own.name, 60)}. The table below has the numbers.`);
    };
    choose.value = String(data.opening.recalibration);
    choose.addEventListener("change", show);
    return Promise.all([errors, show()]);
  }

  // What a chart shows, as a file: made here, from what the page holds; nothing is fetched.
  function save(kind, id) {
    const place = byId(id);
    const [text, type] = kind === "svg" ? [svgText(place), "image/svg+xml"] : [csvText(place), "text/csv"];
    const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `itrust-${id.replace("chart-", "")}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    byId("live").textContent = `Saved as ${link.download}.`;
  }

  function svgText(place) {
    const made = place.querySelector("svg").cloneNode(true);
    made.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const style = getComputedStyle(document.documentElement);
    made.style.background = style.getPropertyValue("--sheet").trim();
    for (const part of [made, ...made.querySelectorAll("*")]) { // colours stand in attributes; text stays as it is
      for (const { name, value } of [...part.attributes]) {
        if (value.includes("var(")) part.setAttribute(name, value.replace(/var\((--[a-z0-9]+)\)/g, (_, own) => style.getPropertyValue(own).trim()));
      }
    }
    return new XMLSerializer().serializeToString(made);
  }

  // Text that a spreadsheet would take for a formula gets a quote before it.
  const csvCell = (text) => {
    const safe = /^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const PAIRS = new Map([["interval", ["lower", "upper"]], ["judged on", ["judged on", "rows"]]]); // two numbers in a cell
  function csvText(place) {
    const made = place.dataset.table.split(" ").map(byId).filter(Boolean);
    return made.map((own) => {
      const numbersOf = (cell) => Array.from(cell.querySelectorAll("data"), (part) => part.getAttribute("value"));
      const rows = Array.from(own.tBodies[0].rows);
      const heads = Array.from(own.tHead.rows[0].cells, (cell, k) => { // a covariate may be called "interval"
        const name = cell.textContent.trim();
        const paired = rows.length && numbersOf(rows[0].cells[k]).length === 2;
        return paired && PAIRS.has(name) ? PAIRS.get(name) : [name];
      });
      const lines = rows.map((row) => Array.from(row.cells, (cell, k) => {
        const numbers = numbersOf(cell);
        const named = cell.querySelector("bdi");
        return heads[k].length === 2 ? numbers : [numbers.length ? numbers[0] : (named || cell).textContent.trim()];
      }).flat());
      return [heads.flat(), ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n");
    }).join("\r\n\r\n") + "\r\n";
  }

  // Print has no choices, so every view is drawn, small: at once, since printing does not wait.
  const SVG = "http://www.w3.org/2000/svg";
  const shape = (tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const scale = ([from, to], [low, high]) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);
  const BOX = { width: 226, height: 150, left: 38, right: 6, top: 6, bottom: 30 };

  function small(title, about, height = BOX.height) {
    const made = document.createElement("figure");
    made.className = "small-view";
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    const svg = shape("svg", { viewBox: `0 0 ${BOX.width} ${height}`, role: "img", "aria-label": `${title}, ${about}` });
    made.append(caption, svg);
    return [made, svg];
  }
  function frame(svg, [x0, x1], [y0, y1], name) {
    const text = (x, y, words, anchor) => svg.append(shape("text", { x, y, "text-anchor": anchor, class: "tick" }, words));
    const base = BOX.height - BOX.bottom;
    svg.append(shape("rect", { x: BOX.left, y: BOX.top, width: BOX.width - BOX.left - BOX.right, height: base - BOX.top, class: "frame" }));
    text(BOX.left, base + 11, x0, "start"); text(BOX.width - BOX.right, base + 11, x1, "end");
    text(BOX.left - 3, BOX.top + 8, y1, "end"); text(BOX.left - 3, base, y0, "end");
    text((BOX.left + BOX.width - BOX.right) / 2, base + 24, name, "middle");
  }
  const inner = () => [[BOX.left, BOX.width - BOX.right], [BOX.height - BOX.bottom, BOX.top]];
  function stamp(svg, x, y, own, radius, ink) {
    const up = own === "high" ? -1 : 1;
    if (own === "not") svg.append(shape("circle", { cx: x, cy: y, r: radius * 0.6, class: "not" }));
    else svg.append(shape("path", { d: `M${x - radius},${y + up * radius * 0.7}L${x + radius},${y + up * radius * 0.7}L${x},${y - up * radius}Z`, class: ink || own }));
  }
  const byRun = (points) => [...points.reduce((runs, point) => runs.set(point.run, [...(runs.get(point.run) || []), point]), new Map()).values()];
  const trace = (points, x, y) => points.map((point, k) => `${k ? "L" : "M"}${x(point)},${y(point)}`).join("");

  function smallCurve(covariate, part, reach) {
    const when = (point) => (covariate.kind === "date" ? Date.parse(point.x) : point.x);
    const points = pointsOf(part);
    const [across, up] = inner();
    const ends = [when(points[0]), when(points[points.length - 1])];
    const sx = scale(ends, across);
    const sy = scale([-reach, reach], up);
    const clipped = (value) => sy(Math.max(-reach, Math.min(reach, value)));
    const [made, svg] = small(`${short(covariate.name, 40)}: ${short(part.group, 40)}, ${whole(part.rows)} rows`, spread(points));
    frame(svg, [points[0].at, points[points.length - 1].at], [signed(-reach), signed(reach)], short(covariate.name, 30));
    for (const run of byRun(inRuns(points, hasBand))) {
      const upper = trace(run, (point) => sx(when(point)), (point) => clipped(point.upper));
      const back = [...run].reverse().map((point) => `L${sx(when(point))},${clipped(point.lower)}`).join("");
      svg.append(shape("path", { d: `${upper}${back}Z`, class: "band" }));
    }
    svg.append(shape("path", { d: `M${across[0]},${sy(0)}L${across[1]},${sy(0)}`, class: "zero" }));
    for (const run of byRun(inRuns(points, hasBias))) svg.append(shape("path", { d: trace(run, (point) => sx(when(point)), (point) => sy(point.bias)), class: "curve" }));
    points.filter((point) => hasBias(point) && point.state !== "not").forEach((point) => stamp(svg, sx(when(point)), sy(point.bias), point.state, 3));
    return made;
  }

  function smallLevels(own) {
    const rows = levelRows(own);
    const height = 15 * rows.length + 18;
    const reach = Math.max(...rows.flatMap((row) => [row.lower, row.upper].map(Math.abs)), 0.01);
    const [made, svg] = small(`by ${short(own.name, 40)}`, spread(rows, "groups"), height);
    const x = scale([-reach, reach], [100, BOX.width - BOX.right]);
    svg.append(shape("path", { d: `M${x(0)},0L${x(0)},${height - 14}`, class: "zero" }));
    rows.forEach((row, k) => {
      const y = 15 * k + 9;
      svg.append(shape("text", { x: 97, y: y + 3, "text-anchor": "end", class: "tick" }, short(row.name, 22)));
      if (hasBand(row)) svg.append(shape("path", { d: `M${x(row.lower)},${y}L${x(row.upper)},${y}`, class: "curve" }));
      stamp(svg, x(row.bias), y, row.state, 4);
    });
    [[-reach, "start"], [reach, "end"]].forEach(([end, anchor]) => svg.append(shape("text", { x: x(end), y: height - 3, "text-anchor": anchor, class: "tick" }, signed(end))));
    return made;
  }

  function smallMap(own) {
    const { across, up } = own;
    const cells = cellsOf(own);
    const [made, svg] = small(`${short(across.name, 40)} and ${short(up.name, 40)}`, spread(cells, "cells"));
    const ends = (side) => [side.at[0], side.at[side.at.length - 1]].map((at) => short(at, 8));
    frame(svg, ends(across), up.edges.length ? ends(up) : ends(up).reverse(), short(`${short(across.name, 20)}, up: ${short(up.name, 20)}`, 44));
    const span = (side) => (side.edges.length ? [side.edges[0], side.edges[side.edges.length - 1]] : [0, side.at.length]);
    const [horizontal, vertical] = inner();
    const [sx, sy] = [scale(span(across), horizontal), scale(span(up), vertical)];
    for (const cell of cells) {
      const [x0, x1] = across.edges.length ? [sx(cell.x0), sx(cell.x1)] : [sx(cell.i), sx(cell.i + 1)];
      const [y0, y1] = up.edges.length ? [sy(cell.y0), sy(cell.y1)] : [sy(up.at.length - cell.j - 1), sy(up.at.length - cell.j)]; // the first level on top
      const step = STEPS.filter((end) => cell.bias >= end).length;
      svg.append(shape("rect", { x: x0, y: y1, width: x1 - x0, height: y0 - y1, class: `f${step}` }));
      if (cell.state !== "not") stamp(svg, (x0 + x1) / 2, (y0 + y1) / 2, cell.state, 1.6, Math.abs(cell.bias) >= data.tolerance ? "ground" : "ink");
    }
    return made;
  }

  function smallReliability(title, own, before, domain) {
    const [made, svg] = small(title, "observed rate against prediction");
    const [across, up] = inner();
    const [sx, sy] = [scale(domain, across), scale(domain, up)];
    frame(svg, domain.map(digits), domain.map(digits), "prediction");
    svg.append(shape("path", { d: `M${sx(domain[0])},${sy(domain[0])}L${sx(domain[1])},${sy(domain[1])}`, class: "zero" }));
    const at = [(bin) => sx(bin.predicted), (bin) => sy(bin.observed)];
    if (before) svg.append(shape("path", { d: trace(before, ...at), class: "before" }));
    own.filter(hasBand).forEach((bin) => svg.append(shape("path", { d: `M${sx(bin.predicted)},${sy(bin.lower)}L${sx(bin.predicted)},${sy(bin.upper)}`, class: "curve" })));
    svg.append(shape("path", { d: trace(own, ...at), class: "curve" }));
    own.forEach((bin) => svg.append(shape("circle", { cx: at[0](bin), cy: at[1](bin), r: 2, class: "ink" })));
    return made;
  }

  const smallViews = {
    "print-curves": () => [
      ...data.curves.flatMap((covariate) => {
        const ends = covariate.parts.flatMap((part) => part.bias).filter((value) => value !== null).map(Math.abs);
        const reach = Math.max(...ends, data.tolerance) * 1.5;
        return covariate.parts.map((part) => smallCurve(covariate, part, reach));
      }),
      ...data.groups.map(smallLevels),
    ],
    "print-maps": () => data.maps.map(smallMap),
    "print-reliability": () => {
      const domain = square([data.reliability, ...data.reliability_by_group.map((line) => line.curve)]);
      return data.reliability_by_group.map((line) =>
        smallReliability(`${short(line.group, 40)}, ${whole(line.rows)} rows (dashed: all)`, binsOf(line.curve), binsOf(data.reliability), domain));
    },
    "print-recalibration": () => {
      const domain = square(data.recalibrations.map((own) => own.curve));
      const [before, ...methods] = data.recalibrations;
      return methods.map((own) => smallReliability(`${short(own.name, 40)} (dashed: before)`, binsOf(own.curve), binsOf(before.curve), domain));
    },
  };
  const folded = () => document.querySelectorAll("details[data-print]:not([open])");
  let opened = [];
  window.addEventListener("beforeprint", () => {
    for (const [id, views] of Object.entries(smallViews)) byId(id)?.replaceChildren(...views());
    opened = [...opened, ...folded()];
    opened.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => {
    for (const id of Object.keys(smallViews)) byId(id)?.replaceChildren();
    opened.forEach((part) => { part.open = false; });
    opened = [];
  });

  document.querySelectorAll("main table").forEach(sortable);
  document.querySelectorAll("button[data-save]").forEach((button) =>
    button.addEventListener("click", () => save(button.dataset.save, button.dataset.of)));
  Promise.all([forest(), curves(), maps(), reliability(), recalibrations(), nullDistribution()])
    .then(() => { document.documentElement.dataset.ready = "yes"; });
})();
