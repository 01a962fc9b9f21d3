"""One page that needs no network and takes no text for markup."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from tests.report import made_up
from tests.report.test_inside import weights
from tpr_attention.report.document import Document, Figure, Heads, Section, Table, Text
from tpr_attention.report.inside import look_inside
from tpr_attention.report.interactive import plot
from tpr_attention.report.page import page

EVIL = "<script>alert(1)</script> \"quote\" 'single' & \N{PARTY POPPER}"
VOID = {"meta", "link", "img", "br"}


class Reader(HTMLParser):
    """Tags with their attributes and texts; complains about tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append([tag, dict(attributes), ""])
        if tag not in VOID:
            self.open.append(self.tags[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for entry in self.open:
            entry[2] += data

    def all(self, tag, **wanted):
        return [
            (attributes, text)
            for name, attributes, text in self.tags
            if name == tag and all(attributes.get(key) == value for key, value in wanted.items())
        ]


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def document(study, *blocks):
    return Document(
        "A report",
        [Section("Words", [Text("Run `make <it>` now."), *blocks]), Section("Figures", [Figure(study, "A caption.")])],
    )


@pytest.fixture
def results(run):
    return run(made_up.study())


def test_nothing_is_loaded_from_elsewhere(results):
    reader = read(page(document(made_up.study()), results))
    places = [
        attributes[key] for _, attributes, _ in reader.tags for key in ("src", "href", "srcset") if key in attributes
    ]
    assert len(places) >= 7
    assert all(re.match(r"#|figures/|tables/|data:,$", place) for place in places)
    scripts = [text for attributes, text in reader.all("script") if "type" not in attributes]
    assert len(scripts) == 2
    styles = "".join(text for _, text in reader.all("style"))
    assert "--paper" in styles
    assert "url(" not in styles
    assert "@import" not in styles


def test_the_policy_allows_the_two_scripts_and_no_other(results):
    reader = read(page(document(made_up.study()), results))
    ((attributes, _),) = reader.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in attributes["content"].split(";"))
    assert rules["default-src"] == "'none'"
    scripts = [text for attributes, text in reader.all("script") if "type" not in attributes]
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert rules["script-src"].split() == hashes
    assert not re.search(r"https?:|\*|unsafe-eval", attributes["content"])


def test_no_chart_can_be_uploaded(results):
    (script,) = (
        text for _, text in read(page(document(made_up.study()), results)).all("script") if "newPlot" in text[:999]
    )
    assert 'plotlyServerURL: ""' in script
    assert '"sendChartToCloud"' in script


def test_texts_are_texts(run):
    study = replace(made_up.study(models=("tpr", EVIL)), name=EVIL, title=EVIL)
    table = Table(EVIL, EVIL, [EVIL, "n"], [[EVIL, "1"]])
    whole = Document(EVIL, [Section(EVIL, [Text(EVIL), table, replace(table, folded=True), Figure(study, EVIL)])])
    html = page(whole, run(study))
    reader = read(html)
    assert "<script>alert" not in html
    assert len(reader.all("script")) == 3
    for tag, count in {
        "title": 1,
        "h1": 1,
        "h2": 1,
        "summary": 1,
        "figcaption": 1,
        "th": 2,
        "td": 2,
    }.items():
        assert [text for _, text in reader.all(tag)].count(EVIL) == count, tag
    assert EVIL in [text for _, text in reader.all("p")]
    assert reader.all("img")[0][0]["alt"] == EVIL
    ((_, data),) = reader.all("script", type="application/json")
    assert json.loads(data) == plot(study, run(study))


def test_heads_are_a_picture_inside_the_page(results):
    heads = Heads(EVIL, look_inside(weights(), title="<b>"), EVIL)
    reader = read(page(document(made_up.study(), heads), results))
    (picture,) = (attributes for attributes, _ in reader.all("img") if attributes["src"].startswith("data:"))
    kind, data = picture["src"].split(",")
    assert kind == "data:image/png;base64"
    assert b64decode(data).startswith(b"\x89PNG")
    assert picture["alt"] == EVIL
    assert EVIL in [text for _, text in reader.all("figcaption")]
    assert f"figures/{quote(EVIL)}.svg" in [attributes["href"] for attributes, _ in reader.all("a")]


def test_code_is_code(results):
    assert [text for _, text in read(page(document(made_up.study()), results)).all("code")] == ["make <it>"]


def test_contents_lead_to_sections(results):
    reader = read(page(document(made_up.study()), results))
    links = {attributes["href"]: text for attributes, text in reader.all("a") if attributes["href"].startswith("#")}
    assert links == {"#section-1": "Words", "#section-2": "Figures"}
    assert [attributes["id"] for attributes, _ in reader.all("section")] == ["section-1", "section-2"]


def test_a_figure_scrolls_where_it_is_too_wide_and_has_its_files(run):
    study = made_up.study(bands=((2, "SD"),) * 3)
    reader = read(page(document(study), run(study)))
    ((plotted, _),) = reader.all("div", **{"class": "plot"})
    assert int(re.fullmatch(r"min-width:(\d+)px", plotted["style"])[1]) > 3 * 150
    files = [attributes["href"] for attributes, _ in reader.all("a") if "figures/" in attributes["href"]]
    assert files == ["figures/made-up.png", "figures/made-up.svg", "figures/made-up.pdf"]
    assert reader.all("img") == [({"src": "figures/made-up.png", "alt": "A caption."}, "")]
    ((_, notes),) = reader.all("p", **{"class": "notes"})
    assert notes.startswith("Bands: mean ± 2 SD. Lines: mean over 3 seeds.")


def test_tables(results):
    rows = [
        ["a", "holds", "3.2e-06", "1"],
        ["b", "does not hold", "-", "x"],
        ["it holds", "not run", "0.5 [0.1, 0.9]", "2"],
    ]
    table = Table("some table", "All of it.", ["name", "verdict", "loss", "mixed"], rows)
    reader = read(page(document(made_up.study(), table), results))
    assert [text for _, text in reader.all("th")] == ["name", "verdict", "loss", "mixed"]
    assert [text for _, text in reader.all("td")] == [cell for row in rows for cell in row]
    assert [text for _, text in reader.all("td", **{"class": "number"})] == ["3.2e-06", "1", "-", "0.5 [0.1, 0.9]", "2"]
    assert [text for _, text in reader.all("th", **{"class": "number"})] == ["loss"]
    badges = [(attributes["class"], text) for attributes, text in reader.all("span")]
    assert badges == [("badge holds", "holds"), ("badge fails", "does not hold"), ("badge missing", "not run")]
    assert "tables/some%20table.csv" in [attributes["href"] for attributes, _ in reader.all("a")]
    assert reader.all("details") == []
    folded = read(page(document(made_up.study(), replace(table, folded=True)), results))
    assert [text for _, text in folded.all("summary")] == ["All of it."]
    assert len(folded.all("td")) == 12


@pytest.mark.parametrize("runs", [0, 1])
def test_a_page_of_almost_nothing(run, runs):
    study = made_up.study()
    wanted = study.specs[:runs]
    reader = read(page(document(study), run(study, lambda spec: spec in wanted)))
    ((_, data),) = reader.all("script", type="application/json")
    assert len(json.loads(data)["data"]) == runs
    assert read(page(Document("Empty", []), run(study, lambda spec: False))).all("h1") == [({}, "Empty")]


def test_the_same_results_give_the_same_page(results):
    study = made_up.study()
    assert page(document(study), results) == page(document(study), results)
