"""The page about a watch in a real browser: every width, dark and on paper."""

import numpy as np
import pytest
from selenium.webdriver.support.wait import WebDriverWait

import itrust as it
from itrust.render.page import write

pytestmark = pytest.mark.slow

PLANTED = "</script><script>window.pwned=1</script>"


@pytest.fixture(scope="module", params=[1, 12])
def address(request, tmp_path_factory) -> str:
    """A page about one batch or several, with a planted script in the name of a level."""

    def rows(seed, n=200):
        rng = np.random.default_rng(seed)
        p, planted = rng.uniform(0.2, 0.7, n), rng.random(n) < 0.4
        y = rng.random(n) < p + 0.25 * planted * (seed > 4)
        x = {"age": rng.uniform(20, 80, n), "where": np.where(planted, PLANTED, "b")}
        return it.Sample(y, p, x)

    watch = it.Watch.start(rows(0, 1_000), ["mean(age)"])
    for week in range(1, request.param + 1):
        watch = watch.update(rows(week), name=f"week {week} {PLANTED}")
    return write(watch, tmp_path_factory.mktemp("page") / "page.html").as_uri()


@pytest.mark.parametrize("media", ["screen", "print"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_nothing_planted_runs(browser, address, width, scheme, media):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(address)
    page = "document.documentElement"
    assert browser.execute_script(f"return {page}.scrollWidth - {page}.clientWidth") == 0
    assert browser.execute_script("return window.pwned") is None
    told = browser.find_element("tag name", "body").text
    assert "Evidence over time" in told
    ready = "return document.documentElement.dataset.ready"
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(ready))
    script = "return [...document.querySelectorAll('.chart svg')].map((own) => own.clientHeight)"
    drawn = browser.execute_script(script)
    assert len(drawn) == 4
    assert min(drawn) > 80
    assert browser.execute_script(f"return {page}.scrollWidth - {page}.clientWidth") == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
