// Run in a page: takes every view of every menu, saves every chart and prints; answers with what was seen.
// Arguments: names of menus to leave out, and the function that takes the answer.
const [leftOut, done] = arguments;
const byId = (id) => document.getElementById(id);
const MARKS = ".mark-symbol path, .mark-rect path, .mark-line path, .mark-rule line, .mark-area path";
const NO_NUMBER = /="[^"]*(NaN|undefined)[^"]*"/;
const CHARTS = {
  "choose-curve": "chart-curve", "choose-curve-part": "chart-curve", "choose-map": "chart-map",
  "choose-reliability": "chart-reliability", "choose-recalibration": "chart-recalibration",
};
const texts = (parts) => [...parts].map((own) => own.textContent);
const views = [];
const see = (view, id) => {
  const svg = byId(id).querySelector("svg");
  views.push({
    view: `${view}: ${id}`, marks: svg ? svg.querySelectorAll(MARKS).length : 0,
    odd: svg !== null && NO_NUMBER.test(svg.innerHTML), titles: svg ? texts(svg.querySelectorAll(".role-axis-title text")) : [],
  });
};
const until = async (test) => {
  const end = performance.now() + 10_000;
  while (!test() && performance.now() < end) await new Promise((next) => setTimeout(next, 2));
};
const choose = (menu, k) => {
  byId(menu).selectedIndex = k;
  byId(menu).dispatchEvent(new Event("change"));
};
const saved = {};
let last;
URL.createObjectURL = (blob) => { last = blob; return "#"; };
HTMLAnchorElement.prototype.click = () => {};

(async () => {
  await until(() => document.documentElement.dataset.ready);
  document.querySelectorAll(".chart").forEach((own) => see("first", own.id));
  const menus = {};
  for (const [menu, id] of Object.entries(CHARTS)) {
    if (menu === "choose-curve-part") choose("choose-curve", 0);
    menus[menu] = [...byId(menu).options].map((own) => own.title);
    for (let k = 0; k < menus[menu].length && !leftOut.includes(menu); k++) {
      const before = byId(id).dataset.drawn;
      choose(menu, k);
      await until(() => byId(id).dataset.drawn !== before);
      see(`${menu} ${k}`, id);
    }
  }
  for (const button of document.querySelectorAll("button[data-save]")) {
    const { save, of } = button.dataset;
    button.click();
    const text = await last.text();
    const sound = save === "csv" || !new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror");
    saved[`${of} ${save}`] = { text, sound };
  }
  dispatchEvent(new Event("beforeprint"));
  await until(() => [...document.querySelectorAll(".small-view")].every((own) => own.querySelector("svg")));
  const small = [...document.querySelectorAll(".small-view svg")].map((own) => ({
    marks: own.querySelectorAll(MARKS).length, odd: NO_NUMBER.test(own.innerHTML),
  }));
  dispatchEvent(new Event("afterprint"));
  done({
    ready: document.documentElement.dataset.ready, views, menus, saved, small,
    tags: [...new Set([...document.querySelectorAll("header *, main *")].map((own) => own.localName))],
    scripts: document.scripts.length, pwned: window.pwned !== undefined,
    overflow: document.documentElement.scrollWidth - innerWidth,
    groups: texts(document.querySelectorAll("#table-groups tbody th bdi")),
    text: texts(document.querySelectorAll("header, main")).join(""),
  });
})();
