"""`python -m tpr_attention.demo` tells figure 1 in seconds, with numbers that are computed."""

import re
import subprocess
import sys

from tpr_attention.demo import OBJECTS, story


def test_the_story_has_the_numbers_of_the_figure():
    told = story()
    weights = [re.search(rf"^ +{' '.join(names)} +(\d)", told, re.MULTILINE)[1] for names in OBJECTS]
    assert weights == ["0", "1", "0"]
    assert "what was found:  triangle" in told
    assert re.findall(r"^    shape +(.*)$", told, re.MULTILINE) == ["        ".join("000010")] * 2
    assert re.findall(r"^    colour +(.*)$", told, re.MULTILINE) == [
        "        ".join(row) for row in ("010000", "000000")
    ]


def test_it_fits_a_terminal():
    lines = story().splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 90


def test_it_is_run_as_a_module():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tpr_attention.demo"], capture_output=True, text=True, check=True
    )
    assert done.stdout == story()
    assert done.stderr == ""
