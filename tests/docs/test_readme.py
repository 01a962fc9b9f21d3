"""The README is short, runs, and says what the documentation shows."""

import csv
import re

from tests.docs.test_pages import ROOT, run

README = (ROOT / "README.md").read_text()
SAID = re.sub(r"\s+", " ", README)


def test_the_example_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 1
    result = run("\n".join(blocks), tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "torch.Size([2, 4, 100, 100])\n"


def test_it_takes_two_screens():
    assert len(README.splitlines()) <= 110


def test_no_sentence_has_more_than_two_numbers():
    prose = re.sub(r"```.*?```|!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|`[^`]*`", "", README, flags=re.DOTALL)
    sentences = re.split(r"(?<=[.:])\s+|\n\n|\|", prose)
    assert len(sentences) > 20
    for sentence in sentences:
        assert len(re.findall(r"\d[\d,.]*", sentence)) <= 2, sentence


def test_three_results_have_a_figure_and_a_page_each():
    results = README.split("## Results")[1].split("\n## ")[0]
    assert len(re.findall(r"^\*\*\[[^]]+\]\(docs/[\w-]+\.md\)", results, re.MULTILINE)) == 3
    assert len(re.findall(r"^!\[[^]]+\]\(docs/figures/result-", results, re.MULTILINE)) == 3


def test_the_ratios_of_the_page_of_speed_are_those_measured():
    """One sequence, 4 heads, forward and backward: time of causal softmax attention over ours."""
    with (ROOT / "benchmarks" / "results" / "attention-threads1.csv").open() as file:
        times = {
            (row["contestant"], row["r"], row["f"], row["T"]): float(row["milliseconds"])
            for row in csv.DictReader(file)
            if (row["heads"], row["batch"], row["matches"], row["mode"]) == ("4", "1", "1", "forward+backward")
        }
    page = (ROOT / "docs" / "performance.md").read_text()
    for r, f in (("6", "3"), ("8", "16"), ("16", "32")):
        ratios = [
            f"{times['SDPA', r, f, length] / times[name, r, f, length]:.1f}"
            for name in ("auto", "fixed roles")
            for length in ("64", "512", "2048", "8192")
        ]
        assert f"| {r} x {f} | {' | '.join(ratios)} |" in page


def test_the_results_are_those_of_the_map():
    shown = (ROOT / "docs" / "map.md").read_text()
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "where-it-holds.md").read_text())
    assert "better than attention and a ResNet do, however many training pairs there are" in SAID
    (without,) = set(
        re.findall(r"Without interaction, the claim .*? holds at every number of pairs that was (\w+)", shown)
    )
    assert without == "run"
    assert "For the numerical interaction the turn comes between 1,000 and 3,000 pairs" in page
    row = r"^\| scale_pos \| \w+ \| ood_(?:reference|transform) \|(.*)\|$"
    paper = shown.split("The same as a table: who is lowest, and by what factor: the paper's three models")[1]
    lowest = [re.findall(r" (\w+) (?:x|tie|≥)", found) for found in re.findall(row, paper, re.MULTILINE)[:6]]
    assert [(one[3], one[4]) for one in lowest] == [("tpr", "resnet")] * 6
    assert "`tpr-laws`, has the lowest loss, or one below 1e-6, at every size and in every {term}`cell`" in page
    (low, cells) = set(re.findall(r"`tpr-laws` is lowest in (\d+) of (\d+) solvable cells and sizes", shown)).pop()
    assert low == cells == "182"


def test_the_result_of_sequences_is_that_of_recall():
    recall = (ROOT / "docs" / "recall.md").read_text()
    table = recall.split("Compound keys: accuracy at the end of training.")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*\|$", table, re.MULTILINE)]
    longest = {row[0]: float(row[6].split()[0]) for row in rows[2:]}
    assert rows[0][6] == "new pairings, 256 pairs"
    assert longest["TPR-Attention, two matches, sum"] == longest["softmax attention"] == 1
    assert max(longest["linear attention"], longest["delta rule"]) < 0.6
    assert "pairings of keys that training never had, in sequences sixteen times as long" in SAID
    assert "linear attention and the delta rule do not" in SAID
