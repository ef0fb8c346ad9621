"""Estimates, and audits with a population, in a real browser: every width, dark and on paper."""

import numpy as np
import pytest
from selenium.webdriver.support.wait import WebDriverWait

import itrust as it
from itrust.tasks import estimate_tasks

pytestmark = pytest.mark.slow

PLANTED = "</script><script>window.pwned=1</script>"


@pytest.fixture(scope="module", params=["estimates", "audit"])
def address(request, tmp_path_factory) -> str:
    """A page about labelled rows that are young, with a planted script in the name of a level."""
    made = it.simulate.survey(3_000, rng=0).sample
    region = made.column("region")
    levels = [PLANTED if level == "south" else level for level in region.levels]
    age = made.column("age").values
    x = {"age": age, "region": np.take(np.array(levels, dtype=object), region.values)}
    young = np.flatnonzero(
        np.random.default_rng(0).random(3_000) < 0.6 / (1 + np.exp((age - 45) / 15))
    )
    few = it.Sample(made.y[young], made.p[young], {name: own[young] for name, own in x.items()})
    everyone, path = it.Population(made.p, x), tmp_path_factory.mktemp("page") / "page.html"
    if request.param == "audit":
        found = it.audit(few, draws=79, rng=0, charts=False, population=everyone)
        return found.to_html(path).as_uri()
    tasks = ["prevalence()", "mean(age)", "coef(age ; age + region)"]
    wanted = [it.tasks.parse(text) for text in tasks]
    return estimate_tasks(wanted, everyone, few, rng=0).to_html(path).as_uri()


@pytest.mark.parametrize(  # every two settings meet
    ("width", "scheme", "media"),
    [
        (1280, "light", "screen"),
        (390, "dark", "screen"),
        (1280, "dark", "print"),
        (390, "light", "print"),
    ],
)
def test_the_page_fits_and_nothing_planted_runs(browser, address, width, scheme, media):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(address)
    page = "document.documentElement"
    ready = f"return {page}.dataset.ready"
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(ready))
    assert browser.execute_script(f"return {page}.scrollWidth - {page}.clientWidth") == 0
    assert browser.execute_script("return window.pwned") is None
    told = browser.find_element("tag name", "body").text
    assert "rows have a lower age: mean" in told
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
