"""How large the explorer's page is, and how long a browser takes until its first room is drawn.

    python benchmarks/explorer.py [--times 5]

The page has the models that are shipped with the documentation. Chromium is the one that is installed.
"""

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tpr_attention.explorer.page import ROOMS, write_page
from tpr_attention.explorer.trained import of_folder

MODELS = Path(__file__).parents[1] / "docs" / "models"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    folders = [MODELS, *sorted(path for path in MODELS.iterdir() if path.is_dir())]
    page = write_page([one for folder in folders for one in of_folder(folder)])
    print(f"size: {len(page.encode()) / 2**20:.2f} MiB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "explore.html"
        path.write_text(page, encoding="utf-8")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print("| room | median ms until drawn | longest |\n|---|---|---|")
        for room in ROOMS:
            taken = []
            for _ in range(times):
                opened = browser.new_page()
                opened.goto(f"{path.as_uri()}#{room}")
                opened.wait_for_selector("html[data-ready]", state="attached")
                taken.append(float(opened.evaluate("document.documentElement.dataset.ready")))
                opened.close()
            print(f"| {room} | {statistics.median(taken):.0f} | {max(taken):.0f} |")
        browser.close()


if __name__ == "__main__":
    main()
