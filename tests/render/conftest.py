"""A real browser for pages: Debian's Chromium, headless."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
    *("disable-dev-shm-usage", "hide-scrollbars"),
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[webdriver.Chrome]:
    if os.environ.get("ITRUST_NO_BROWSER") == "1":
        pytest.skip("ITRUST_NO_BROWSER=1")
    lacking = [str(path) for path in (CHROMIUM, DRIVER) if not path.exists()]
    if lacking:
        pytest.fail(
            f"{' and '.join(lacking)} not found: `make browser` installs them (Debian's chromium "
            f"and chromium-driver); ITRUST_NO_BROWSER=1 goes without"
        )
    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()
