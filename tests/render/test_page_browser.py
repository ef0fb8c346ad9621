"""The page in a real browser: Debian's Chromium, headless, without a network."""

import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

import itrust as it
import paper

pytestmark = pytest.mark.slow

PLANTED = "</script><script>window.pwned=1</script>"
MUTED = "rgb(167, 176, 185)"  # of the dark palette, which charts follow
Browser = webdriver.Chrome


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    """A page about a file with a planted script in the name and the levels of a column."""
    rng = np.random.default_rng(0)
    n = 800
    levels = [PLANTED, "<img src=x onerror=window.pwned=2>", "\u05d0\u05d1 " + "z" * 10_000]
    old = rng.random(n) < 0.5  # nobody is between 40 and 60: a gap
    x = {
        "age": np.where(old, rng.integers(60, 80, n), rng.integers(20, 40, n)),
        "inc\\": rng.lognormal(10, 0.5, n),  # its end would end a string of a chart's expression
        PLANTED: rng.choice(levels, n).astype(object),
    }
    p = rng.uniform(0.1, 0.9, n)
    y = rng.random(n) < np.clip(p + 0.3 * (x["age"] > 50), 0, 1)
    sample = it.Sample(y, p, x)
    learn, judge = sample.split([0.5, 0.5], rng=0)
    methods = [it.recalibrate.Platt(), it.recalibrate.Isotonic()]
    learned = it.recalibrate.compare(methods, learn, judge, draws=99, rng=0, slices=False)
    audit = it.audit(sample, ["mean(age)"], draws=99, rng=0).extended(recalibration=learned)
    place: Path = tmp_path_factory.mktemp("page") / "report.html"
    return audit.to_html(place).as_uri()


def dress(browser: Browser, width: int, scheme: str) -> None:
    """Give the window a width, and the reader a liking for light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def show(browser, address) -> Callable[..., Browser]:
    """Open the page anew at a width, light or dark, and wait for its charts."""

    def opened(width: int = 1280, scheme: str = "light") -> Browser:
        dress(browser, width, scheme)
        browser.get(address)
        wait(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
        return browser

    return opened


def wait(done: Callable[[], object], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "the page did not get there in time"
        time.sleep(0.02)


def overflow(browser: Browser) -> int:
    """Pixels by which the page is wider than the window."""
    return browser.execute_script("return document.documentElement.scrollWidth - innerWidth")


def chart(browser: Browser, name: str) -> str:
    return browser.find_element(By.ID, name).get_attribute("innerHTML")


def choose(browser: Browser, select: str, drawn: str, position: int) -> str:
    """Take an option and return the chart when it is drawn again."""
    before = browser.find_element(By.ID, drawn).get_attribute("data-drawn")
    Select(browser.find_element(By.ID, select)).select_by_index(position)
    place = browser.find_element(By.ID, drawn)
    wait(lambda: place.get_attribute("data-drawn") != before)
    return chart(browser, drawn)


def test_the_page_loads_without_errors_and_without_a_network(show, browser):
    browser.get_log("browser")
    browser.get_log("performance")
    show()
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    # "chrome:" is the empty tab that the browser begins with
    assert [url for url in asked if not url.startswith(("file:", "data:", "chrome:"))] == []
    charts = (
        "forest",
        "curve",
        "map",
        "reliability",
        "histogram",
        "errors",
        "recalibration",
        "null",
    )
    for name in charts:
        assert "<svg" in chart(browser, f"chart-{name}")


def test_choices_change_charts_tables_and_descriptions(show):
    browser = show()
    place = browser.find_element(By.ID, "chart-curve")
    covariates = Select(browser.find_element(By.ID, "choose-curve"))
    seen, labels = set(), set()
    for k in range(len(covariates.options)):
        if covariates.options[k].is_selected():
            continue
        seen.add(choose(browser, "choose-curve", "chart-curve", k))
        labels.add(place.get_attribute("aria-label"))
    assert len(seen) == len(labels) >= 3
    choose(browser, "choose-curve", "chart-curve", 0)
    table = browser.find_element(By.ID, "place-curve")
    before = chart(browser, "chart-curve"), table.get_attribute("innerHTML")
    groups = Select(browser.find_element(By.ID, "choose-curve-part"))
    other = next(k for k, option in enumerate(groups.options) if not option.is_selected())
    after = choose(browser, "choose-curve-part", "chart-curve", other)
    assert after != before[0]
    assert table.get_attribute("innerHTML") != before[1]
    levels = Select(browser.find_element(By.ID, "choose-reliability")).options
    assert levels[0].text == "all rows"
    last = chart(browser, "chart-reliability")
    assert choose(browser, "choose-reliability", "chart-reliability", 1) != last
    bins = browser.find_element(By.CSS_SELECTOR, "#table-view-reliability caption")
    assert levels[1].text[:20] in bins.get_attribute("textContent")
    maps = Select(browser.find_element(By.ID, "choose-map"))
    last = chart(browser, "chart-map")
    other = next(k for k, option in enumerate(maps.options) if not option.is_selected())
    assert choose(browser, "choose-map", "chart-map", other) != last
    assert browser.get_log("browser") == []


def test_tables_sort_by_value_with_mouse_and_keyboard(show):
    browser = show()
    table = browser.find_element(By.CSS_SELECTOR, "#slices table, #groups table")
    heads = table.find_elements(By.CSS_SELECTOR, "thead th")
    column = next(k for k, head in enumerate(heads) if head.text.startswith("bias"))
    cells = "return [...arguments[0].tBodies[0].rows].map(row => row.cells[arguments[1]])"

    def values() -> list[float]:
        found = browser.execute_script(cells, table, column)
        return [float(c.find_element(By.TAG_NAME, "data").get_attribute("value")) for c in found]

    button = heads[column].find_element(By.TAG_NAME, "button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert heads[column].get_attribute("aria-sort") == "ascending"
    assert values() == sorted(values())
    button.send_keys(Keys.ENTER)
    assert heads[column].get_attribute("aria-sort") == "descending"
    assert values() == sorted(values(), reverse=True)


def test_a_planted_script_stays_text(show):
    browser = show()
    options = Select(browser.find_element(By.ID, "choose-curve")).options
    planted = next(k for k, option in enumerate(options) if PLANTED in option.text)
    choose(browser, "choose-curve", "chart-curve", planted)
    assert "window.pwned=1" in browser.find_element(By.ID, "chart-curve").text
    assert browser.execute_script("return window.pwned === undefined")
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 3
    assert PLANTED in browser.find_element(By.TAG_NAME, "main").text


def test_hovering_shows_values(show):
    browser = show()
    point = browser.find_element(By.CSS_SELECTOR, "#chart-reliability .mark-symbol path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    webdriver.ActionChains(browser).move_to_element(point).perform()
    wait(lambda: "predicted" in browser.find_element(By.ID, "tip").text)


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_window(show, width):
    browser = show(width)
    assert overflow(browser) <= 0
    script = """
      document.querySelectorAll("details").forEach((part) => { part.open = true; });
      return [...document.querySelectorAll("#groups td.strong")]
        .every((cell) => cell.getBoundingClientRect().right <= innerWidth);
    """
    assert browser.execute_script(script)  # every bias of a group or slice is in sight
    assert overflow(browser) <= 0


def test_the_menu_stays_in_sight(show):
    browser = show(390)
    browser.execute_script("document.getElementById('method').scrollIntoView()")
    script = "return document.querySelector('nav').getBoundingClientRect().top"
    assert browser.execute_script(script) == 0
    title = "return document.getElementById('method-title').getBoundingClientRect().top"
    assert browser.execute_script(title) > 20  # the menu does not cover it


def test_the_band_breaks_where_there_is_no_estimate(show):
    browser = show()
    for select, wanted in (("choose-curve", "age"), ("choose-curve-part", "all rows")):
        options = Select(browser.find_element(By.ID, select)).options
        position = [option.text for option in options].index(wanted)
        if not options[position].is_selected():
            choose(browser, select, "chart-curve", position)
    script = """
      const curves = JSON.parse(document.getElementById("data").textContent).curve.sets;
      const width = (own) => own.getBoundingClientRect().width;
      const whole = width(document.querySelector("#chart-curve svg"));
      const bands = [...document.querySelectorAll("#chart-curve .mark-area path")];
      return [curves.find((own) => own.name === "age").parts[0].bias,
        bands.map((path) => width(path) / whole)];
    """
    bias, widths = browser.execute_script(script)
    known = "".join(" " if value is None else "x" for value in bias)
    assert len(known.split()) == len(widths) == 2
    assert max(widths) < 0.5


@pytest.mark.parametrize("kind", ["svg", "csv"])
def test_a_chart_can_be_saved_without_a_network(show, kind, tmp_path):
    browser = show(scheme="dark")
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    browser.execute_script(
        "document.querySelector(arguments[0]).click()",
        f"button[data-save={kind}][data-of=chart-forest]",
    )
    place = tmp_path / f"itrust-forest.{kind}"
    wait(place.exists)
    saved = place.read_bytes().decode()
    if kind == "svg":
        assert ElementTree.fromstring(saved).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in saved
    else:
        tables = [list(csv.reader(part.splitlines())) for part in saved.split("\r\n\r\n")]
        assert [table[0][:4] for table in tables] == [
            ["rule", "bias", "lower", "upper"],
            ["group", "bias", "lower", "upper"],
        ]
        assert all(float(row[2]) <= float(row[3]) for table in tables for row in table[1:])
        assert any(row[0] == f"{PLANTED} = {PLANTED}" for row in tables[1])
    assert browser.get_log("browser") == []


def test_dark_is_dark_and_still_fits(show):
    browser = show(390, "dark")
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(part) for part in ground[4:-1].split(","))
    assert max(red, green, blue) < 60
    assert overflow(browser) <= 0
    ink = (
        "return getComputedStyle(document.querySelector('#chart-curve .role-axis-label text')).fill"
    )
    assert browser.execute_script(ink) == "rgb(167, 176, 185)"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(show, scheme):
    """AA: 4.5 for text, by the relative luminance of WCAG."""
    browser = show(scheme=scheme)
    script = """
      const style = getComputedStyle(document.documentElement);
      return arguments[0].map((name) => style.getPropertyValue(name).trim());
    """
    grounds = browser.execute_script(script, ["--paper", "--sheet", "--soft"])
    inks = ["--ink", "--muted", "--accent", "--bad", "--fair", "--good", "--open"]
    for ink in browser.execute_script(script, inks):
        for ground in grounds:
            light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


def luminance(colour: str) -> float:
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_every_view_is_in_the_print(show):
    """Counted while the page is printed; on screen they are not there."""
    browser = show()
    script = """
      addEventListener("beforeprint", () => {
        const titles = (name) => [...document.querySelectorAll(`#print-${name} figcaption`)]
          .map((own) => own.textContent);
        window.printed = ["curve", "map", "reliability", "recalibration"].map(titles);
        window.drawn = document.querySelectorAll(".small-view svg").length;
        window.folded = document.querySelectorAll("details[data-print]:not([open])").length;
      });
      return JSON.parse(document.getElementById("data").textContent);
    """
    data = browser.execute_script(script)
    browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    curves, maps, groups, methods = browser.execute_script("return window.printed")
    drawn = browser.execute_script("return window.drawn")  # printing does not wait
    assert browser.execute_script("return window.folded") == 0
    assert len(curves) == sum(len(own["parts"]) for own in data["curve"]["sets"])
    assert len(set(curves)) == len(curves) > 3
    (charted,) = data["map"]["sets"]
    first = charted["parts"][0]
    assert maps[0].startswith(f"{first['across']['name']} and {first['up']['name']}")
    assert len(maps) == len(charted["parts"]) > 1
    assert len(groups) == len(data["reliability"]["sets"][0]["parts"]) > 1
    assert drawn == len(curves) + len(maps) + len(groups) + len(methods)
    assert methods == ["Platt (dashed: before)", "Isotonic (dashed: before)"]
    assert browser.find_elements(By.CLASS_NAME, "small-view") == []
    assert browser.get_log("browser") == []


def test_it_prints_on_a4_without_choices_lost(show):
    browser = show(scheme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert browser.execute_script(
        "return getComputedStyle(document.querySelector('nav')).display === 'none'"
    )
    script = """
      dispatchEvent(new Event("beforeprint"));
      return [...document.querySelectorAll(".scroll")]
        .every((part) => part.scrollHeight <= part.clientHeight + 1);
    """
    assert browser.execute_script(script)  # no table runs over what stands below it
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert len(printed["data"]) > 10_000


def test_the_keyboard_reaches_content_choices_and_tables(show):
    browser = show()
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.get_attribute("class") == "skip"
    first.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
    summary = browser.find_element(By.CSS_SELECTOR, "#curves summary")
    summary.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "#table-view-curve caption").is_displayed()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_papers_page_fits_and_shows_its_pictures(browser, width, scheme, tmp_path):
    kept, page = Path(__file__).parents[2] / "studies" / "pages" / "paper", tmp_path / "paper.html"
    page.write_text(paper.html(paper.records(kept), kept), encoding="utf-8")
    dress(browser, width, scheme)
    browser.get(page.as_uri())
    script = "return [...document.images].map((image) => image.naturalWidth)"
    wait(lambda: len(sizes := browser.execute_script(script)) == 8 and min(sizes) > 0)
    assert overflow(browser) <= 0
    assert browser.get_log("browser") == []
