"""Every chart draws whatever columns, levels, models and titles are called, and shows the names."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import itrust as it
from hostile_names import KNOWN, hostile_names, renamed, stand_in_audit, stand_ins
from itrust._core import printable, shown_name
from itrust.render import page

LONG_NAME = 80  # longer ones are cut

pytestmark = pytest.mark.nightly

PAGES = 5  # of about 30 names each: all that are known, and some that are made up
TOUR = (Path(__file__).parent / "names_tour.js").read_text(encoding="utf-8")
LOOK = """
const done = arguments[0];
const charts = [...document.querySelectorAll(".chart")];
document.querySelectorAll("details").forEach((own) => { own.open = true; });
const wait = () => {
  const drawn = charts.every((own) => own.dataset.drawn);
  if (!document.documentElement.dataset.ready || !drawn) return setTimeout(wait, 5);
  const odd = charts.filter((own) => /="[^"]*(NaN|undefined)[^"]*"/.test(own.innerHTML)).length;
  const wider = Math.max(0, document.documentElement.scrollWidth - innerWidth);
  const pwned = window.pwned !== undefined;
  done({ odd, scripts: document.scripts.length, pwned, wider });
};
wait();
"""
MARKUP = {"img", "b", "script", "iframe", "style", "link", "object"}  # what names would make


class Tour(NamedTuple):
    """The names on a page, what a browser saw there, and what it logged."""

    names: dict[str, str]
    seen: dict[str, Any]
    log: list[Any]

    def short_names(self, kinds: str) -> list[str]:
        """As the page shows them whole: names of columns, levels or others."""
        own = [name for mark, name in self.names.items() if re.match(f"zz({kinds})", mark)]
        return [told for told in map(spelt, own) if len(told) <= LONG_NAME]


def spelt(name: str) -> str:
    return printable(name, lines=False)


@pytest.fixture(scope="module")
def tours(browser, tmp_path_factory) -> list[Tour]:
    """Pages about one audit under ever other names, on wide and narrow screens in turn."""
    audit = stand_in_audit()
    places = stand_ins(audit.to_dict())
    names = hostile_names(PAGES * len(places))
    browser.set_script_timeout(60)
    browser.get_log("browser")
    found = []
    for k in range(PAGES):
        own = dict(zip(places, names[k * len(places) :], strict=False))
        place = tmp_path_factory.mktemp("names") / "page.html"
        page.write(renamed(audit, own.__getitem__), place)
        screen = {"width": (1280, 390)[k % 2], "mobile": bool(k % 2)}
        size = {"height": 844, "deviceScaleFactor": 1, **screen}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(place.as_uri())
        # Curves of every group, which are many, are drawn on one page of each width.
        seen = browser.execute_async_script(TOUR, ["choose-curve-part"] if k > 1 else [])
        found.append(Tour(own, seen, browser.get_log("browser")))
    return found


def test_every_name_that_is_known_is_tried_and_some_others(tours):
    tried = {name for tour in tours for name in tour.names.values()}
    assert set(KNOWN) <= tried
    assert len(tried - set(KNOWN)) >= 20


def test_every_view_of_every_menu_is_drawn_without_an_error(tours):
    for names, seen, log in tours:
        assert log == [], names
        assert seen["ready"] == "yes"
        assert [view for view in seen["views"] if not view["marks"] or view["odd"]] == []
        assert len(seen["views"]) > 25
        assert len(seen["small"]) > 30
        assert [view for view in seen["small"] if not view["marks"] or view["odd"]] == []


def test_names_are_shown_as_they_are(tours):
    for tour in tours:
        columns = tour.short_names("number|date|category")
        assert {shown_name(name) for name in columns} <= set(tour.seen["menus"]["choose-curve"])
        for name in tour.short_names("task|title|model|file|method"):
            assert name in tour.seen["text"]
        (by,) = tour.short_names("category1") or [None]
        for level in tour.short_names("level1") if by is not None else []:
            own = f'"{level}"' if shown_name(level) != level else level
            assert f"{by} = {own}" in tour.seen["groups"]


def test_titles_of_axes_are_the_names(tours):
    for tour in tours:
        titles = {without_blanks(title) for view in tour.seen["views"] for title in view["titles"]}
        names = [shown_name(name) for name in tour.short_names("number|date") if len(name) <= 20]
        assert set(map(without_blanks, names)) <= titles


def without_blanks(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_no_name_becomes_markup_or_code_or_breaks_the_page(tours):
    for tour in tours:
        assert not tour.seen["pwned"]
        assert tour.seen["scripts"] == 3
        assert not MARKUP & set(tour.seen["tags"])
        assert tour.seen["overflow"] <= 0


def test_no_text_tells_of_a_value_that_is_not_there(tours):
    for tour in tours:
        for word in ("undefined", "NaN", "[object"):
            assert word in "".join(tour.names.values()) or word not in tour.seen["text"]


def test_what_is_saved_is_sound_and_names_stay_names(tours):
    for tour in tours:
        saved = tour.seen["saved"]
        assert [name for name, own in saved.items() if not own["sound"]] == []
        colours = any("var(" in own["text"] for own in saved.values())
        assert colours == ("var(" in "".join(tour.names.values()))
        heads = saved["chart-curve csv"]["text"].split("\r\n")[0].split(",")
        assert heads[-6:-3] == ["bias", "lower", "upper"]


def other_pages(names: list[str]) -> dict[str, str]:
    """Pages of several classes, of estimates and of a watch, where all is called so."""
    rng, n = np.random.default_rng(0), 400
    p = rng.dirichlet([2, 2, 2, 2], n)
    codes = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    levels = np.array(names[6:10], dtype=object)
    x = {names[4]: rng.normal(size=n), names[5]: rng.choice(levels, n)}
    classes = it.MulticlassSample([names[k] for k in codes], p, x, classes=names[:4])
    sample = it.Sample(rng.random(n) < p[:, 0], p[:, 0], x)
    tasks = [it.tasks.mean(names[4]).named(names[10]), it.tasks.prevalence()]
    watch = it.Watch.start(sample, tasks)
    for k in range(3):
        rows = rng.choice(n, 200)
        watch = watch.update(sample.take(rows), name=names[11 + k])
    population = it.Population(p[:, 0], x)
    return {
        "classes": page.page(it.audit(classes, draws=79, rng=0)),
        "estimates": page.page(it.tasks.estimate_tasks(tasks, population, sample, rng=0)),
        "watch": page.page(watch),
    }


@pytest.mark.parametrize(("width", "first"), [(1280, 0), (390, 70)])
def test_charts_of_other_pages_draw_whatever_names_are(browser, tmp_path, width, first):
    known = hostile_names(200)  # no lone surrogates, which labels cannot have
    names = [name for name in known if name.strip() and not re.search("[\ud800-\udfff]", name)]
    for start in range(first, first + 70, 14):
        own = list(dict.fromkeys(name.strip() or "a" for name in names[start : start + 14]))
        own += [f"name {k}" for k in range(14 - len(own))]
        for kind, text in other_pages(own).items():
            place = tmp_path / f"{kind}.html"
            place.write_text(text, encoding="utf-8", errors="backslashreplace")
            size = {"height": 844, "deviceScaleFactor": 1, "width": width, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get_log("browser")
            browser.get(place.as_uri())
            seen = browser.execute_async_script(LOOK)
            assert browser.get_log("browser") == [], own
            assert seen == {"odd": 0, "scripts": 3, "pwned": False, "wider": 0}, own
