// Charts, choices, sorting, saving and printing. Data come from the JSON block; names from the user's file
// are only ever values or text nodes. They are never field names, keys, HTML or code: the chart
// library writes titles of tooltips and orders of categories into expressions and looks up titles of axes in an object,
// so tooltips are ours, categories are drawn by number, and titles are parameters.
"use strict";
(() => {
  const pictures = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const MINUS = "\u2212";
  const wide = () => window.innerWidth > 640;

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
    const ends = signs.slice(from, most + 1).map((sign, k) => (/[\s_=,;:/-]/.test(sign) && signs[from + k + 1] !== "%" ? from + k : -1)).filter((at) => at > 0);
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
  const configOf = (small) => ({
    aria: false, background: null, font: "system-ui, sans-serif", view: { stroke: small ? "var(--line)" : null },
    text: { color: "var(--ink)", fontSize: small ? 8 : 12 },
    axis: {
      labelColor: "var(--muted)", titleColor: "var(--ink)", gridColor: "var(--line)", domainColor: "var(--muted)", tickColor: "var(--muted)",
      labelFontSize: small ? 7.5 : 12, titleFontSize: small ? 7.5 : 13, titleFontWeight: 500, titlePadding: small ? 3 : 8,
      labelLimit: small ? 80 : 140, titleLimit: small ? 180 : 420, gridOpacity: 0.7, ...(small ? { tickSize: 2, grid: false } : {}),
    },
  });
  const ticks = (small) => (small ? 3 : wide() ? 10 : 4);
  const BIAS = "bias (observed \u2212 predicted)";
  const quantity = (field, more = {}) => ({ field, type: "quantitative", ...more });
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

  // Positions of categories are numbers. Their names, and titles of axes, are parameters of the chart.
  const named = (param, names) => ({ name: param, value: names });
  const titled = (param) => ({ title: { expr: `${param}Title` } });
  const titleOf = (param, name, most) => named(`${param}Title`, inLines(name, most));
  const byNumber = (field, param, count, axis, scale) => ({
    field, type: "ordinal", scale: { domain: [...Array(count).keys()], ...scale }, axis: axis && { labelExpr: `${param}[datum.value]`, ...axis },
  });

  // The one way to say "shown to be miscalibrated": a filled triangle that points to the side of the bias.
  const STATES = ["low", "high", "not", "best"];
  const SAID = { low: "yes, too low", high: "yes, too high", not: "no", best: "" };
  const stateOf = (flagged, bias) => (!flagged ? "not" : bias > 0 ? "low" : "high");
  const scaled = (range) => ({ field: "state", type: "nominal", legend: null, scale: { domain: STATES, range } });
  const marks = {
    shape: scaled(["triangle-up", "triangle-down", "circle", "circle"]),
    fill: scaled(["var(--low)", "var(--high)", "var(--sheet)", "var(--accent)"]),
    stroke: scaled(["var(--low)", "var(--high)", "var(--muted)", "var(--accent)"]),
  };
  const hasBand = (row) => row.lower !== null && row.upper !== null;
  const hasBias = (row) => row.bias !== null;
  const ruled = (values, encoding, more = {}) => ({ data: { values }, mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5, ...more }, encoding });
  const zero = ruled([{}], { y: { datum: 0 } });

  // A bias as rows of charts and tables have it: numbers, texts, and whether it is shown.
  const biased = (numbers, flagged, rowsText) => {
    const state = stateOf(flagged, numbers.bias);
    const [biasText, intervalText, pText] = [signed(numbers.bias), interval(numbers.lower, numbers.upper), digits(numbers.pvalue)];
    return { ...numbers, state, shown: SAID[state], biasText, intervalText, pText, rowsText };
  };
  const tipOf = (row, rows = "rows") => [["bias", row.biasText], ["interval", row.intervalText], ["adjusted p", row.pText], [rows, row.rowsText]];
  const spread = (rows, what) => {
    const known = rows.filter(hasBias);
    if (!known.length) return "no value anywhere";
    const biases = known.map((row) => row.bias);
    const count = known.filter((row) => row.state !== "not").length;
    return `from ${signed(Math.min(...biases))} to ${signed(Math.max(...biases))}; shown to be miscalibrated at ${count} of ${known.length} ${what}`;
  };
  const biasHead = (rows) => [["bias", "num"], ["lower", "num"], ["upper", "num"], [rows, "num"], ["adjusted p", "num"], ["shown to be miscalibrated", ""]];
  const biasCells = (row) => [
    [row.biasText, row.bias], [signed(row.lower), row.lower], [signed(row.upper), row.upper],
    [row.rowsText, row.rows], [row.pText, row.pvalue], [row.shown],
  ];

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

  // Each kind of chart: from a view, its picture, its set and whether it is small, to a specification, words and a table.
  const kinds = { intervals, curve, map, reliability, bars, change, line };

  // Intervals, one a row; on a narrow screen names stand above them.
  function intervals(part, own, _, small) {
    const beside = small || wide();
    const rows = part.rows.map((row) => (row.tip ? row : biased(row, row.shown, row.told)));
    const [most, line] = small ? [24, 24] : beside ? [86, 48] : [80, 44];
    const names = distinct(rows.map((row) => short(row.name, most))).map((name) => inLines(name, line));
    const lines = Math.max(...names.map((name) => name.length));
    const values = rows.map((row, k) => ({ ...row, k, label: names[k].join("\n"), lines: names[k].length, tip: [["", short(row.name, 300)], ...(row.tip || tipOf(row))] }));
    const reach = part.shade === undefined ? 0 : 1.2 * part.shade;
    const middle = part.guide === undefined ? [-reach, reach] : [part.guide];
    const ends = [...values.flatMap((row) => [row.lower, row.upper, row.bias]).filter((end) => end !== null), ...middle];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const room = 0.03 * (high - low) || 1;
    const axis = { tickCount: small ? 3 : wide() ? 8 : 5, ...titled("x"), ...(part.bare ? { labels: false, ticks: false } : {}) };
    const x = quantity("lower", { scale: { domain: [low - room, high + room], nice: false, zero: false }, axis });
    const labels = { grid: false, domain: false, ticks: false, title: null, labelLimit: small ? 90 : 360, labelLineHeight: 13, labelColor: "var(--ink)",
      labelBaseline: { condition: { test: "length(names[datum.value]) > 1", value: "bottom" }, value: "middle" } };
    const y = byNumber("k", "names", rows.length, beside ? labels : null, { paddingOuter: 0.3 });
    const yOffset = beside ? 0 : 9;
    const layer = [
      ruled([{}], { x: { datum: part.guide === undefined ? 0 : part.guide } }, part.guide === undefined ? {} : { strokeDash: [4, 3] }),
      { ...ruled(values.filter(hasBand), { y, x, x2: { field: "upper" }, color: marks.stroke }, { strokeWidth: 2, yOffset }) },
      { mark: { type: "point", size: small ? 30 : 90, opacity: 1, strokeWidth: 1.5, yOffset, tooltip: TIP }, encoding: { y, x: { ...x, field: "bias" }, ...marks } },
    ];
    if (part.shade !== undefined) {
      layer.unshift({ data: { values: [{ from: -part.shade, to: part.shade }] }, mark: { type: "rect", color: "var(--soft)" }, encoding: { x: quantity("from"), x2: { field: "to" } } });
    }
    if (!beside) {
      layer.push(...[1, 2].map((count) => ({ // so that the last line stands just above the interval
        data: { values: values.filter((row) => row.lines === count) },
        mark: { type: "text", align: "left", baseline: "bottom", lineBreak: "\n", lineHeight: 14, x: 0, dy: 2 - 14 * (count - 1), limit: { expr: "width" } },
        encoding: { y, text: { field: "label" } },
      })));
    }
    const step = small ? 12 : beside ? 23 + 5 * lines : 30 + 15 * lines;
    const params = [named("names", names), titleOf("x", part.x || BIAS, small ? 40 : wide() ? 80 : 36)];
    return { spec: { height: step * values.length + (small ? 20 : 60), params, data: { values }, layer }, label: part.rows[0].tip ? "" : spread(values, "rows") };
  }

  const pointsOf = (part) => part.x.map((x, k) => ({
    x, at: part.at[k], group: short(part.group, 60),
    ...biased({ bias: part.bias[k], lower: part.lower[k], upper: part.upper[k], pvalue: part.pvalue[k], rows: part.neighbours[k] }, part.flagged[k], whole(part.neighbours[k])),
  })).map((point) => ({ ...point, tip: [["at", point.at], ["group", point.group], ...tipOf(point, "rows nearby")] }));

  function curve(part, own, set, small) {
    if (set.kind === "levels") {
      const rows = part.rows.map((row) => biased(row, row.shown, row.told));
      const head = [["group", ""], ...biasHead("rows")];
      const made = { caption: `Bias by ${short(set.name, 60)}`, head, rows: rows.map((row) => [[row.name], ...biasCells(row)]) };
      return { ...intervals(part, own, set, small), title: `by ${short(set.name, 40)}`, table: made };
    }
    const points = pointsOf(part);
    const dated = set.kind === "date";
    const x = { field: "x", type: dated ? "temporal" : "quantitative", scale: dated ? { type: "utc" } : { zero: false, nice: false, padding: 8 }, axis: { grid: false, tickCount: ticks(small), ...titled("x") } };
    // Small views of a covariate have one scale, so that groups can be compared.
    const all = set.parts.flatMap((other) => other.bias).filter((value) => value !== null).map(Math.abs);
    const reach = 1.5 * Math.max(...all, 0.01);
    const y = quantity("bias", { title: small ? null : BIAS, axis: { tickCount: small ? 3 : 8 }, ...(small ? { scale: { domain: [-reach, reach], clamp: true } } : {}) });
    const detail = { field: "run", type: "nominal" };
    const banded = inRuns(points, hasBand);
    const ends = { x, y: { ...y, field: "lower" }, y2: { field: "upper" } };
    const layer = [ // a point between two gaps has a rule for a band
      { data: { values: banded.filter((point) => !point.alone) }, mark: { type: "area", color: "var(--band)", opacity: 0.75 }, encoding: { ...ends, detail } },
      ruled(banded.filter((point) => point.alone), ends, { color: "var(--band)", strokeWidth: 3 }),
      zero,
    ].filter((one) => one.data.values.length);
    const traced = (values, more) => ({ data: { values: inRuns(values, hasBias) }, mark: { type: "line", color: "var(--ink)", strokeWidth: small ? 1 : 1.8, ...more }, encoding: { x, y, detail } });
    if (part !== set.parts[0] && set.parts[0].by === null) layer.push(traced(pointsOf(set.parts[0]), { color: "var(--muted)", strokeDash: [5, 4], strokeWidth: small ? 0.8 : 1.5 }));
    const seen = points.filter((point) => hasBias(point) && !(small && point.state === "not"));
    layer.push(traced(points, {}));
    if (seen.length) layer.push({ data: { values: seen }, mark: { type: "point", size: small ? 14 : 56, opacity: 1, strokeWidth: 1.3, tooltip: TIP }, encoding: { x, y, ...marks } });
    const about = `${short(set.name, 60)}, ${short(part.group, 60)}`;
    const made = {
      caption: `Bias along ${about}, ${whole(part.rows)} rows`, head: [[short(set.name, 40), "num"], ...biasHead("rows nearby")],
      rows: points.map((point) => [[point.at, typeof point.x === "number" ? point.x : point.at], ...biasCells(point)]),
    };
    const params = [titleOf("x", set.name, small ? 36 : wide() ? 80 : 36)];
    return { spec: { height: small ? 90 : 320, params, layer }, label: `${about}: ${spread(points, "points")}`, title: `${short(set.name, 40)}: ${short(part.group, 40)}, ${whole(part.rows)} rows`, table: made };
  }

  const cellsOf = (part) => {
    const { across, up } = part;
    return up.at.flatMap((upAt, j) => across.at.map((acrossAt, i) => {
      const k = j * across.at.length + i;
      const numbers = { bias: part.bias[k], lower: part.lower[k], upper: part.upper[k], pvalue: part.pvalue[k], rows: part.neighbours[k] };
      const row = { ...biased(numbers, part.flagged[k], whole(part.neighbours[k])), i, j, acrossAt, upAt,
        x0: across.edges[i], x1: across.edges[i + 1], y0: up.edges[j], y1: up.edges[j + 1],
        xm: (across.edges[i] + across.edges[i + 1]) / 2, ym: (up.edges[j] + up.edges[j + 1]) / 2 };
      return { ...row, tip: [[short(across.name, 60), acrossAt], [short(up.name, 60), upAt], ...tipOf(row, "rows nearby")] };
    })).filter(hasBias);
  };
  const levelNames = (side) => distinct(side.at.map((at) => short(at, 60)));

  function map(part, own, _, small) {
    const { across, up } = part;
    const cells = cellsOf(part);
    const color = quantity("bias", { legend: null, scale: { type: "threshold", domain: own.steps, range: [0, 1, 2, 3, 4, 5, 6].map((k) => `var(--d${k})`) } });
    // Strong colours are dark on light ground and light on dark: paper stands out from both.
    const contrast = { condition: { test: `abs(datum.bias) >= ${own.steps[4]}`, value: "var(--paper)" }, value: "var(--ink)" };
    const channel = (side, param, field, low, high, middle) => {
      if (side.kind === "level") {
        const axis = { grid: false, ...titled(param), labelLimit: small ? 60 : wide() ? 160 : 90, labelAngle: 0 };
        const place = byNumber(field, param, side.at.length, axis, { padding: 0.03 });
        return [place, null, place];
      }
      const ends = [side.edges[0], side.edges[side.edges.length - 1]];
      const labels = side.kind === "date" ? { labelExpr: "utcFormat(datum.value * 86400000, '%Y-%m-%d')" } : {};
      const base = { scale: { domain: ends, nice: false, zero: false }, axis: { grid: false, tickCount: ticks(small), ...titled(param), ...labels } };
      return [quantity(low, base), { field: high }, quantity(middle, base)];
    };
    const [x, x2, xm] = channel(across, "across", "i", "x0", "x1", "xm");
    const [y, y2, ym] = channel(up, "up", "j", "y0", "y1", "ym");
    const about = `${short(across.name, 60)} and ${short(up.name, 60)}`;
    const made = {
      caption: `Bias over ${about}`, head: [[short(across.name, 40), "num"], [short(up.name, 40), "num"], ...biasHead("rows nearby")],
      rows: cells.map((cell) => [[cell.acrossAt, cell.acrossAt], [cell.upAt, cell.upAt], ...biasCells(cell)]),
    };
    const [wideTitle, highTitle] = small ? [36, 20] : wide() ? [80, 44] : [32, 32];
    const spec = {
      height: small ? 90 : up.kind === "level" ? 44 * up.at.length + 60 : wide() ? 380 : 280,
      params: [named("across", levelNames(across)), named("up", levelNames(up)), titleOf("across", across.name, wideTitle), titleOf("up", up.name, highTitle)],
      layer: [
        { data: { values: cells }, mark: { type: "rect", strokeWidth: small ? 0.4 : 0.8, tooltip: TIP }, encoding: { x, ...(x2 ? { x2 } : {}), y, ...(y2 ? { y2 } : {}), fill: color, stroke: color } },
        { data: { values: cells.filter((cell) => cell.state !== "not") }, mark: { type: "point", size: small ? 5 : wide() ? 30 : 14, opacity: 1, strokeWidth: 0, clip: true, tooltip: TIP },
          encoding: { x: xm, y: ym, shape: marks.shape, fill: contrast } },
      ],
    };
    return { spec, label: `${about}: ${spread(cells, "points")}`, title: `${short(across.name, 40)} and ${short(up.name, 40)}`, table: made };
  }

  // Predictions and rates on the same axes, from 0 to 1 or, where all are small or all large, to a round end.
  function square(curves, bars) {
    const all = curves.flatMap((one) => [one.predicted, one.lower, one.upper, one.observed].flat()).filter((value) => value !== null);
    if (bars) all.push(bars.edges[0], bars.edges[bars.edges.length - 1]);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const step = (wanted) => {
      const span = Math.max(wanted, 1e-6);
      return [1, 2, 5, 10].map((k) => k * 10 ** Math.floor(Math.log10(span))).find((k) => k >= span * (1 - 1e-9)) / 10;
    };
    if (high < 0.5) return [0, Math.min(1, Math.ceil(high / step(high)) * step(high))];
    if (low > 0.5) return [Math.max(0, 1 - Math.ceil((1 - low) / step(1 - low)) * step(1 - low)), 1];
    return [0, 1];
  }
  const squareOf = (own) => square([...own.sets[0].parts.map((part) => part.curve), ...(own.baseline ? [own.baseline] : [])], own.histogram);
  const binsOf = (one, name) => one.predicted.map((predicted, k) => {
    const [observed, lower, upper, rows] = [one.observed[k], one.lower[k], one.upper[k], one.rows[k]];
    const texts = [["rows of", name], ["predicted", rate(predicted)], ["observed", rate(observed)], ["interval", `${rate(lower)} to ${rate(upper)}`], ["rows", whole(rows)]];
    return { name, predicted, observed, lower, upper, rows, tip: texts };
  });
  const SIDE = 52; // pixels of a vertical axis, so that the histogram stands below the curve

  function reliability(part, own, _, small) {
    const domain = squareOf(own);
    const before = own.baseline && part.curve !== own.sets[0].parts[0].curve || own.before ? binsOf(own.baseline, own.before ? "before" : "all") : null;
    const values = binsOf(part.curve, own.before ? "after" : short(part.group, 60));
    const scale = { domain, nice: false };
    const x = quantity("predicted", { title: own.x || "mean prediction", scale, axis: { tickCount: small ? 3 : wide() ? 10 : 5 } });
    const y = quantity("observed", { title: own.y || "observed rate", scale, axis: { tickCount: small ? 3 : 5, ...(small ? {} : { minExtent: SIDE, maxExtent: SIDE }) } });
    const dots = (rows, more) => ({ data: { values: rows }, mark: { type: "point", size: small ? 12 : 70, opacity: 1, tooltip: TIP, ...more }, encoding: { x, y } });
    const trace = (rows, more) => ({ data: { values: rows }, mark: { type: "line", color: "var(--ink)", strokeWidth: 1.2, opacity: 0.6, ...more }, encoding: { x, y } });
    const layer = [
      { data: { values: domain.map((end) => ({ a: end })) }, mark: { type: "line", color: "var(--muted)", strokeDash: [2, 3], strokeWidth: 1.5 }, encoding: { x: quantity("a"), y: quantity("a") } },
      ...(before ? [trace(before, { color: "var(--muted)", strokeDash: [6, 4], strokeWidth: small ? 0.8 : 1.5, opacity: 1 })] : []),
      ...(before && !small ? [dots(before, { size: 60, stroke: "var(--muted)", fill: "var(--sheet)", strokeWidth: 1.5 })] : []),
      ruled(values.filter(hasBand), { x, y: { ...y, field: "lower" }, y2: { field: "upper" } }, { color: "var(--ink)", strokeWidth: small ? 1 : 1.5 }),
      trace(values, {}), dots(values, { filled: true, color: "var(--ink)" }),
    ];
    const title = own.before ? `${short(part.group, 40)} (dashed: before)` : `${short(part.group, 40)}${part.rows ? `, ${whole(part.rows)} rows (dashed: all)` : ""}`;
    const told = [...(own.before ? before : []), ...values];
    const head = [...(own.before ? [["which", ""]] : []), ...["predicted", "observed", "lower", "upper", "rows"].map((name) => [name, "num"])];
    const made = {
      caption: own.before ? `Reliability before and after ${short(part.group, 60)}, in bins of equal weight` : `Observed rate by bin of the prediction, ${short(part.group, 60)}, with intervals of 95 % each`,
      head, rows: told.map((bin) => [...(own.before ? [[bin.name]] : []), ...["predicted", "observed", "lower", "upper"].map((key) => [rate(bin[key]), bin[key]]), [whole(bin.rows), bin.rows]]),
    };
    return { spec: { height: small ? 100 : 340, layer }, label: title, title, table: made };
  }

  function bars(part) {
    const widths = part.counts.map((_, k) => part.edges[k + 1] - part.edges[k]);
    const usual = Math.min(...widths); // bars that were joined are as low as their parts on average
    const values = part.counts.map((count, k) => ({
      from: part.edges[k], to: part.edges[k + 1], count: (count * usual) / widths[k], base: 0,
      tip: [[part.x.split(",")[0], `${digits(part.edges[k])} to ${digits(part.edges[k + 1])}`], [part.y, whole(count)]],
    }));
    const [low, top] = [part.edges[0], part.edges[part.edges.length - 1]];
    const seen = part.observed;
    const far = seen > top + 4 * (top - low); // then the draws would be one thin bar
    const high = seen === undefined ? top : far ? top + 1.5 * (top - low) : Math.max(top, seen);
    const domain = part.low ? squareOf(pictures.reliability) : [Math.min(low, seen === undefined ? low : seen), high];
    const extent = part.low ? { minExtent: SIDE, maxExtent: SIDE } : {};
    const encoding = {
      x: quantity("from", { title: part.x, scale: { domain, nice: !part.low && !far }, axis: { grid: false, tickCount: wide() ? 10 : 5 } }), x2: { field: "to" },
      y: quantity("count", { title: part.y, axis: { tickCount: part.low ? 3 : 6, ...extent } }), y2: { field: "base" },
    };
    const layer = [{ data: { values }, mark: { type: "rect", color: "var(--bar)", stroke: "var(--sheet)", strokeWidth: 0.5, tooltip: TIP }, encoding }];
    if (seen !== undefined) {
      const at = Math.min(seen, high);
      const right = at > (domain[0] + high) / 2;
      const where = [{ at, text: `these labels: ${digits(seen)}${far ? ", off the scale \u2192" : ""}` }];
      layer.push(ruled(where, { x: quantity("at") }, { color: "var(--ink)", strokeWidth: 2.5 }), {
        data: { values: where }, encoding: { x: quantity("at"), text: { field: "text" } },
        mark: { type: "text", align: right ? "right" : "left", dx: right ? -8 : 8, y: 12, color: "var(--ink)", fontWeight: 600 },
      });
    }
    const about = seen === undefined ? `from ${digits(low)} to ${digits(top)}`
      : `${whole(part.draws)} draws, from ${digits(low)} to ${digits(part.largest)}; the data have ${digits(seen)}, which ${whole(part.at_least)} draws reach`;
    return { spec: { height: part.low ? 90 : 240, layer }, label: about };
  }

  function change(part) {
    const rows = part.rows.filter((row) => row.before !== null && row.after !== null);
    const values = rows.map((row, k) => ({ ...row, k, name: `${short(row.name, 30)}: ${row.of}` }))
      .map((row) => ({ ...row, tip: [["", row.name], ["before", digits(row.before)], ["after", digits(row.after)]] }));
    const x = quantity("before", { title: "calibration error", axis: { tickCount: wide() ? 8 : 4 } });
    const y = byNumber("k", "names", values.length, { title: null, labelLimit: wide() ? 240 : 130, ticks: false, domain: false });
    const point = { type: "point", size: 80, opacity: 1, tooltip: TIP };
    const layer = [
      { mark: { type: "rule", color: "var(--muted)", strokeWidth: 1.5 }, encoding: { y, x, x2: { field: "after" } } },
      { mark: { ...point, stroke: "var(--muted)", fill: "var(--sheet)", strokeWidth: 1.5 }, encoding: { y, x } },
      { mark: { ...point, filled: true, color: "var(--ink)" }, encoding: { y, x: { ...x, field: "after" } } },
    ];
    const params = [named("names", distinct(values.map((row) => row.name)))];
    return { spec: { height: 26 * values.length + 50, params, data: { values }, layer }, label: values.map((row) => `${row.name} ${digits(row.before)} before, ${digits(row.after)} after`).join("; ") };
  }

  // A line over batches or sizes; `log` counts powers of ten. Many dots are thinned, lines are not.
  function line(part) {
    const few = part.points.length <= 60;
    const dots = part.dots || (few ? part.points : part.points.filter((point) => point.state === "raised"));
    const some = dots.filter((_, k) => k % Math.ceil(dots.length / 400) === 0);
    const heights = [...part.points, ...dots].map((point) => point.y).concat(part.rule === undefined ? [] : [part.rule], part.log ? [0] : []);
    const [low, high] = [Math.min(...heights), Math.max(...heights)];
    const room = (part.low ? 0.15 : 0.06) * (high - low) || 0.05;
    const powers = { tickMinStep: 1, labelExpr: "datum.value < -3 || datum.value > 4 ? '1e' + datum.value : format(pow(10, datum.value), ',')" };
    const across = { grid: false, tickCount: wide() && !part.low ? 10 : 4, ...titled("x"), ...(part.whole ? { tickMinStep: 1, format: "d" } : {}), ...(part.percent ? { format: "~%" } : {}) };
    const x = quantity("x", { scale: { zero: false, nice: false, padding: 10 }, axis: across });
    const y = quantity("y", { title: part.y, scale: { domain: [low - room, high + (part.top === 0 ? 0 : room)], nice: false, zero: false }, axis: { tickCount: part.low ? 4 : 6, ...(part.log ? powers : {}) } });
    const colour = part.accent ? "var(--accent)" : "var(--ink)";
    const look = (name) => ({ raised: ["var(--bad)", "var(--sheet)"], late: ["var(--sheet)", "var(--ink)"] })[name] || (part.dots ? ["var(--low)", "var(--low)"] : [colour, colour]);
    const layer = [
      ...(part.band ? [{ data: { values: [{ from: part.band[0], to: part.band[1] }] }, mark: { type: "rect", color: "var(--band)", opacity: 0.6 }, encoding: { x: quantity("from"), x2: { field: "to" } } }] : []),
      ...(part.breaks || []).map((at) => ruled([{}], { x: { datum: at } }, { strokeDash: [2, 3] })),
      ...(part.uprights || []).map((at) => ruled([{}], { x: { datum: at } }, { color: "var(--accent)" })),
      ...(part.rule === undefined ? [] : [ruled([{}], { y: { datum: part.rule } }, { strokeDash: [6, 4], ...(part.ruleText ? { color: "var(--bad)" } : {}) })]),
      ...(part.ruleText ? [{ data: { values: [{}] }, mark: { type: "text", align: "left", x: 4, dy: -7, text: part.ruleText, color: "var(--bad)", fontWeight: 600 }, encoding: { y: { datum: part.rule } } }] : []),
      { data: { values: part.points }, mark: { type: "line", color: colour, strokeWidth: 1.5 }, encoding: { x, y, detail: { field: "run", type: "nominal" } } },
      { data: { values: some.map((point) => ({ ...point, fill: look(point.state)[0], edge: look(point.state)[1], size: point.state === "raised" ? 130 : few ? 45 : 16 })) }, mark: { type: "point", opacity: 1, strokeWidth: 1.2, tooltip: TIP },
        encoding: { x, y, size: { field: "size", type: "quantitative", scale: null }, fill: { field: "fill", type: "nominal", scale: null }, stroke: { field: "edge", type: "nominal", scale: null } } },
    ];
    return { spec: { height: part.low ? 130 : wide() ? 290 : 210, params: [titleOf("x", part.x, 40)], layer }, label: "" };
  }

  async function draw(place, spec, small) {
    const old = drawn.get(place.id);
    const turn = (old ? old.turn : 0) + 1;
    drawn.set(place.id, { turn, view: old && old.view });
    const full = { width: small ? 170 : "container", autosize: { type: small ? "pad" : "fit", contains: "padding" }, padding: small ? 2 : 5, config: configOf(small), ...spec };
    const inner = document.createElement("div"); // Vega names its own element; ours keeps its words
    place.replaceChildren(inner);
    const made = await vegaEmbed(inner, full, { mode: "vega-lite", actions: false, renderer: "svg", ast: true, tooltip: showTip });
    if (!small && drawn.get(place.id).turn !== turn) { made.finalize(); return; } // a later choice was faster
    if (old && old.view) old.view.finalize();
    drawn.set(place.id, { turn, view: made });
    place.dataset.drawn = String(turn);
  }

  function table(place, id, { caption, head, rows }) {
    const made = document.createElement("table");
    made.id = id;
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

  // A picture shows one view of one of its sets; menus choose which.
  const chosen = new Map(Object.entries(pictures).map(([key, own]) => [key, own.opening || [0, 0]]));
  const viewsOf = (own) => own.sets.flatMap((set) => set.parts.map((part) => [set, part]));
  const nameOf = (part) => (part.across ? `${short(part.across.name, wide() ? 30 : 15)} and ${short(part.up.name, wide() ? 30 : 15)}` : part.group);

  function show(key) {
    const [own, place] = [pictures[key], byId(`chart-${key}`)];
    if (!place.offsetWidth) return null; // in a part that is closed
    const [i, j] = chosen.get(key);
    const [set, part] = [own.sets[i], own.sets[i].parts[j]];
    const view = kinds[own.kind](part, own, set, false);
    const room = byId(`place-${key}`);
    if (room && view.table) {
      const held = place.dataset.tables ??= place.dataset.table; // those of the first view
      const made = !held.trim() || part !== own.sets[0].parts[0];
      if (made) table(room, `table-view-${key}`, view.table); else room.replaceChildren();
      room.parentElement.hidden = !made;
      place.dataset.table = made ? `table-view-${key}` : held;
    }
    place.setAttribute("aria-label", `${own.title}${view.label ? `: ${view.label}` : ""}. A table below has the numbers.`);
    return draw(place, view.spec, false);
  }

  function menus(key) {
    const own = pictures[key];
    const [first, second] = [byId(`choose-${key}`), byId(`choose-${key}-part`)];
    if (!first) return;
    const parts = second || first;
    const fill = (wanted) => {
      const set = own.sets[chosen.get(key)[0]];
      const groups = new Map();
      set.parts.forEach((part, k) => {
        const title = part.by === null || part.by === undefined ? "" : `by ${part.by}`;
        groups.set(title, [...(groups.get(title) || []), [k, nameOf(part)]]);
      });
      options(parts, [...groups]);
      parts.disabled = set.parts.length < 2;
      const same = set.parts.findIndex((part) => nameOf(part) === wanted); // keep the group if it is there
      if (same >= 0) chosen.set(key, [chosen.get(key)[0], same]);
      parts.value = String(chosen.get(key)[1]);
    };
    let last;
    const pick = (i, j) => { chosen.set(key, [i, j]); };
    if (second) {
      options(first, [["", own.sets.map((set, k) => [k, set.name])]]);
      first.value = String(chosen.get(key)[0]);
      first.addEventListener("change", () => { pick(Number(first.value), 0); fill(last); show(key); });
    }
    parts.addEventListener("change", () => {
      const i = chosen.get(key)[0];
      pick(i, Number(parts.value));
      last = nameOf(own.sets[i].parts[Number(parts.value)]);
      show(key);
    });
    const [i, j] = chosen.get(key);
    last = nameOf(own.sets[i].parts[j]);
    fill(last);
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
  const PAIRS = new Map([["interval", ["lower", "upper"]]]); // two numbers in a cell
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

  // Print has no choices, so every view of a picture with a menu is drawn small, and so is what was never opened.
  function small(key, set, part) {
    const own = pictures[key];
    const view = kinds[own.kind](part, own, set, true);
    const made = document.createElement("figure");
    made.className = "small-view";
    const [caption, place] = [document.createElement("figcaption"), document.createElement("div")];
    caption.textContent = view.title || own.title;
    made.append(caption, place);
    draw(place, view.spec, true);
    return made;
  }
  const folded = () => document.querySelectorAll("details[data-print]:not([open])");
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...opened, ...folded()];
    opened.forEach((part) => { part.open = true; });
    for (const [key, own] of Object.entries(pictures)) {
      const views = viewsOf(own);
      const place = byId(`print-${key}`);
      if (!place || place.closest("details:not([open])") || (views.length === 1 && drawn.has(`chart-${key}`))) continue;
      place.replaceChildren(...views.map(([set, part]) => small(key, set, part)));
      byId(`chart-${key}`).classList.add("replaced");
    }
  });
  window.addEventListener("afterprint", () => {
    document.querySelectorAll(".prints").forEach((place) => place.replaceChildren());
    document.querySelectorAll(".replaced").forEach((place) => place.classList.remove("replaced"));
    opened.forEach((part) => { part.open = false; });
    opened = [];
  });

  document.querySelectorAll("main table").forEach(sortable);
  document.querySelectorAll("button[data-save]").forEach((button) =>
    button.addEventListener("click", () => save(button.dataset.save, button.dataset.of)));
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    for (const key of Object.keys(pictures)) {
      if (event.target.contains(byId(`chart-${key}`)) && !drawn.has(`chart-${key}`)) show(key);
    }
  }, true);
  const follow = () => { // a link to something that is closed opens it
    const part = byId(location.hash.slice(1));
    if (part && part.localName === "details") part.open = true;
  };
  window.addEventListener("hashchange", follow);
  follow();
  Object.keys(pictures).forEach(menus);
  Promise.all(Object.keys(pictures).map(show)).then(() => { document.documentElement.dataset.ready = "yes"; });
})();
