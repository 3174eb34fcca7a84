"""A browser without a screen, for the checks of pages."""

import contextlib
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

OPTIONS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic
    --no-first-run --disable-background-networking --disable-component-update --disable-sync
    --disable-breakpad --disable-crash-reporter --window-size=1280,800"""


@contextlib.contextmanager
def chromium(folder):
    """Run Chromium, which saves what it downloads in a folder."""
    options = webdriver.ChromeOptions()
    for word in [*OPTIONS.split(), f"--user-data-dir={folder}/profile"]:
        options.add_argument(word)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        where = {"behavior": "allow", "downloadPath": str(folder)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        yield driver
    finally:
        driver.quit()
