"""One page that needs no network and takes no text for markup."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pytest

from tests.report import made_up
from tpr_attention.report import html
from tpr_attention.report.document import Document, Interactive, Section, Text
from tpr_attention.report.drawings import Curves, HeadMaps
from tpr_attention.report.drawings.pictures import encoded
from tpr_attention.report.inspection import inspect_weights
from tpr_attention.report.statistics import Interval
from tpr_attention.report.tables import Badge, Column, Linked, Table

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


def page(document):
    pictures = [drawing for drawing in document.drawings if not isinstance(drawing, Interactive)]
    return html.page(document, {drawing.name: encoded(drawing.draw(), "png") for drawing in pictures})


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def document(curves, *blocks):
    words = Section("Words", [Text("Run `make <it>` now."), *blocks])
    return Document("A report", [words, Section("Figures", [curves])])


def scripts(reader):
    return [text for attributes, text in reader.all("script") if "type" not in attributes]


@pytest.fixture
def curves(run):
    plan = made_up.plan()
    return Curves(plan, run(plan))


@pytest.fixture
def heads():
    return HeadMaps(EVIL, inspect_weights(made_up.head_weights(), title="<b>"), EVIL)


def test_nothing_is_loaded_from_elsewhere(curves):
    reader = read(page(document(curves)))
    places = [
        attributes[key] for _, attributes, _ in reader.tags for key in ("src", "href", "srcset") if key in attributes
    ]
    assert len(places) >= 7
    assert all(re.match(r"#|figures/|tables/|data:,$", place) for place in places)
    assert len(scripts(reader)) == 2
    styles = "".join(text for _, text in reader.all("style"))
    assert "--paper" in styles
    assert "url(" not in styles
    assert "@import" not in styles


LOSSES = Table("losses", "Losses.", [Column("model"), Column("loss", "number")], [["ours", 0.1]])


@pytest.mark.parametrize(("blocks", "count"), [((), 2), ((LOSSES,), 3)], ids=["figures", "figures and tables"])
def test_the_policy_allows_the_scripts_and_no_other(curves, blocks, count):
    reader = read(page(document(curves, *blocks)))
    assert len(scripts(reader)) == count
    ((attributes, _),) = reader.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in attributes["content"].split(";"))
    assert rules["default-src"] == "'none'"
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts(reader)]
    assert rules["script-src"].split() == hashes
    assert not re.search(r"https?:|\*|unsafe-eval", attributes["content"])


def test_without_interactive_figures_and_tables_there_is_no_script(heads):
    text = page(Document("Pictures", [Section("Heads", [heads])]))
    assert read(text).all("script") == []
    assert "script-src &#39;none&#39;" in text
    assert "plotly" not in text.lower()


def test_without_interactive_figures_there_is_only_the_script_of_tables(heads):
    text = page(Document("Pictures", [Section("Heads", [heads])], opening=[LOSSES]))
    (script,) = scripts(read(text))
    assert "aria-sort" in script
    assert f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}" in text
    assert "plotly" not in text.lower()


def test_no_chart_can_be_uploaded(curves):
    (script,) = (text for text in scripts(read(page(document(curves)))) if "newPlot" in text[:999])
    assert 'plotlyServerURL: ""' in script
    assert '"sendChartToCloud"' in script


def test_texts_are_texts(run):
    plan = replace(made_up.plan(models=("ours", EVIL)), name=EVIL, title=EVIL, caption=EVIL)
    curves = Curves(plan, run(plan))
    columns = [Column(EVIL), Column("n", "count"), Column("v", "badge")]
    table = Table(EVIL, EVIL, columns, [[EVIL, 1, Badge(EVIL, "bad", EVIL)]], "open")
    text = page(Document(EVIL, [Section(EVIL, [Text(EVIL), table, replace(table, shown="folded"), curves])]))
    reader = read(text)
    assert "<script>alert" not in text
    assert len(reader.all("script")) == 4
    assert f"{EVIL} (1 row)" in [words for _, words in reader.all("summary")]
    for tag, count in {
        "title": 1,
        "h1": 1,
        "h2": 1,
        "small": 2,
        "figcaption": 1,
        "th": 2,
        "td": 2,
        "span": 2,
    }.items():
        assert [words for _, words in reader.all(tag)].count(EVIL) == count, tag
    assert EVIL in [words for _, words in reader.all("p")]
    assert reader.all("img")[0][0]["alt"] == EVIL
    ((_, data),) = reader.all("script", type="application/json")
    assert json.loads(data) == curves.plot()


def test_other_drawings_are_pictures_inside_the_page(curves, heads):
    reader = read(page(document(curves, heads)))
    (picture,) = (attributes for attributes, _ in reader.all("img") if attributes["src"].startswith("data:"))
    kind, data = picture["src"].split(",")
    assert kind == "data:image/png;base64"
    assert b64decode(data).startswith(b"\x89PNG")
    assert picture["alt"] == EVIL
    assert EVIL in [text for _, text in reader.all("figcaption")]
    assert f"figures/{quote(EVIL)}.svg" in [attributes["href"] for attributes, _ in reader.all("a")]


def test_code_is_code(curves):
    assert [text for _, text in read(page(document(curves))).all("code")] == ["make <it>"]


def test_contents_lead_to_sections(curves):
    reader = read(page(document(curves)))
    links = {attributes["href"]: text for attributes, text in reader.all("a") if attributes["href"].startswith("#")}
    assert links == {"#section-1": "Words", "#section-2": "Figures"}
    assert [attributes["id"] for attributes, _ in reader.all("section")] == ["section-1", "section-2"]


def test_a_figure_scrolls_where_it_is_too_wide_and_has_its_files(run):
    plan = made_up.plan(bands=((2, "SD"),) * 3)
    reader = read(page(document(Curves(plan, run(plan)))))
    ((plotted, _),) = reader.all("div", **{"class": "plot"})
    assert int(re.fullmatch(r"min-width:(\d+)px", plotted["style"])[1]) > 3 * 150
    files = [attributes["href"] for attributes, _ in reader.all("a") if "figures/" in attributes["href"]]
    assert files == ["figures/made-up.png", "figures/made-up.svg", "figures/made-up.pdf"]
    assert reader.all("img") == [({"src": "figures/made-up.png", "alt": plan.caption}, "")]
    ((_, notes),) = reader.all("p", **{"class": "notes"})
    assert notes.startswith("Bands: mean ± 2 SD. Lines: mean over 3 seeds.")


def test_tables(curves):
    columns = [Column("name"), Column("verdict", "badge"), Column("loss", "number"), Column("ratio", "interval")]
    rows = [
        ["it holds", Badge("holds", "good"), 3.21e-6, Interval(0.5, 0.1, 0.9)],
        ["12", Badge("not run", "none"), None, None],
        ["x", None, np.inf, None],
    ]
    table = Table("some table", "All of it. And more.", columns, rows, "open")
    reader = read(page(document(curves, table)))
    assert [text for _, text in reader.all("th")] == ["name", "verdict", "loss", "ratio"]
    assert [text for _, text in reader.all("td")] == [cell for row in table.texts() for cell in row]
    numbers = [text for _, text in reader.all("td", **{"class": "number"})]
    assert numbers == ["3.2e-06", "0.50 [0.10 to 0.90]", "-", "-", "inf", "-"]
    assert [text for _, text in reader.all("th", **{"class": "number"})] == ["loss", "ratio"]
    badges = [(attributes["class"], text) for attributes, text in reader.all("span")]
    assert badges == [("badge good", "holds"), ("badge none", "not run")]
    assert "tables/some%20table.csv" in [attributes["href"] for attributes, _ in reader.all("a")]
    assert reader.all("details") == []
    values = [attributes.get("data-value") for attributes, _ in reader.all("td")]
    assert values == [None, "0.0", "3.21e-06", "0.5", None, "3.0", None, None, None, None, "inf", None]
    for shown in ("folded", "file"):
        folded = read(page(document(curves, replace(table, shown=shown))))
        assert [text for _, text in folded.all("summary")] == ["All of it (3 rows)"]
        assert len(folded.all("td")) == 12


def test_the_first_screen_comes_before_the_contents():
    badges = [Linked(Badge("holds", "good", "3 of 3"), "Evidence"), Linked(Badge("not run", "none"), "Elsewhere"), None]
    verdicts = Table("map", "Where.", [Column(name, "badge") for name in "abc"], [badges], "open", is_map=True)
    text = page(Document("A report", [Section("Evidence", [])], opening=[verdicts, Text("It holds.")]))
    assert text.index("It holds.") < text.index("<nav")
    reader = read(text)
    cells = reader.all("td")
    assert [attributes["class"] for attributes, _ in cells] == ["good", "none", "empty"]
    assert [words for _, words in cells] == ["holds 3 of 3", "not run", "-"]
    links = [(attributes["href"], words) for attributes, words in reader.all("a")]
    assert [link for link in links if "holds" in link[1]] == [("#section-1", "holds 3 of 3")]
    assert not any("not run" in words for _, words in links)  # there is no such section


def test_every_picture_has_a_text_in_its_place(curves, heads):
    """A long caption is cut after a sentence; one without a caption has its name."""
    long = HeadMaps("long", heads.inspection, f"Heads of `one` run. {'Many words. ' * 40}")
    nameless = HeadMaps("nameless", heads.inspection, "")
    reader = read(page(document(curves, long, nameless)))
    alts = [attributes["alt"] for attributes, _ in reader.all("img")]
    assert all(alts)
    assert "nameless" in alts
    (cut,) = (alt for alt in alts if alt.startswith("Heads of one run. Many words."))
    assert cut.endswith("Many words.")
    assert 150 < len(cut) <= 250
    ((plotted, _),) = reader.all("div", **{"class": "plot"})
    assert plotted["aria-label"] == "Made-up losses."


def test_badges_have_a_style():
    css = html._resource("page.css")
    assert all(f".{tone} {{" in css for tone in ("good", "fair", "bad", "none"))


@pytest.mark.parametrize("runs", [0, 1])
def test_a_page_of_almost_nothing(run, runs):
    plan = made_up.plan()
    wanted = plan.specs[:runs]
    reader = read(page(document(Curves(plan, run(plan, lambda spec: spec in wanted)))))
    ((_, data),) = reader.all("script", type="application/json")
    assert len(json.loads(data)["data"]) == runs
    assert read(page(Document("Empty", []))).all("h1") == [({}, "Empty")]


def test_the_same_results_give_the_same_page(curves):
    assert page(document(curves)) == page(document(curves))


def test_a_number_leads_to_the_row_that_it_comes_from():
    numbers = Table("numbers", "", [Column("loss", "number")], [[Linked(0.5, "run-1")], [Linked(0.25, "run-2")]])
    runs = Table("runs", "", [Column("digest")], [["`abc`"]], row_names=["run-1"])
    text = html.page(Document("", [Section("", [numbers, runs])]), {})
    assert '<a href="#run-1">0.50</a>' in text
    assert '<tr id="run-1"><td><code>abc</code>' in text
    assert "run-2" not in text  # there is no such row
    assert "0.25" in text
    assert "lead to the runs" in text
    assert "lead to the runs" not in html.page(Document("", [Section("", [numbers])]), {})
