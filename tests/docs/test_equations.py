"""The reference links to the paper's equations, and the equations to the reference."""

import importlib
import re

from docs.extensions.equations import PAGE, equations_by_name, label_of, linked, with_links

from tests.docs.test_pages import ROOT

LABELS = re.findall(r"^\(([\w-]+)\)=$", PAGE.read_text(), re.MULTILINE)


def test_an_equation_is_a_block_with_a_link_below():
    docstring = "Match.\n\nM = sum_s O_s            (sec. 3.2.1, App. B.1)\n\n>>> match(1)  # (App. C)\n1"
    first, block, equation, paper, example = linked("f.match", docstring, {"f.match": ("eq-match", "Match")}).split(
        "\n\n"
    )
    assert (first, block, equation) == ("Match.", ".. code-block:: text", "    M = sum_s O_s")
    assert paper == (
        "Paper: :ref:`sec. 3.2.1 <paper-3-2-1>`, :ref:`App. B.1 <paper-b-1>`; equation: :ref:`Match <eq-match>`."
    )
    assert example == ">>> match(1)  # (App. C)\n1"


def test_sections_in_sentences_are_links():
    assert with_links("(App. C and D).") == "(:ref:`App. C <paper-c>` and :ref:`D <paper-d>`)."
    assert with_links("as in Algorithm 1.") == "as in :ref:`Algorithm 1 <paper-algorithm-1>`."
    for text in ("appears, and Appendix", "(Schlag, Irie and Schmidhuber 2021, sec. 6.1)"):
        assert with_links(text) == text
    assert linked("f", "A layer (App. D).", {"f": ("eq-f", "F")}).endswith("Equation: :ref:`F <eq-f>`.\n")


def test_what_has_no_section_has_no_link():
    found = linked("g", "f = u^T O            (inverts bind)\n\nText.", {"g": ("eq-g", "G")})
    assert found.split("\n\n")[2] == "Inverts bind."


def test_every_section_that_the_code_names_is_on_the_page():
    sources = " ".join(path.read_text() for path in (ROOT / "src" / "tpr_attention").rglob("*.py"))
    named = set(re.findall(r"<(paper-[\w-]+)>", with_links(sources)))
    assert len(named) > 10
    assert named <= set(LABELS), named - set(LABELS)
    assert label_of("sec. 3.2.1") in named


def test_labels_are_there_once():
    assert len(LABELS) == len(set(LABELS)) > 30


def test_every_object_that_the_page_names_has_an_equation():
    """A line of mathematics that begins as a label does would end the text of its equation."""
    page = PAGE.read_text()
    assert set(re.findall(r"\{py:obj\}`([\w.]+)`", page)) == set(equations_by_name(page))


def test_the_objects_of_the_page_exist_and_are_in_the_reference():
    reference = (ROOT / "docs" / "api.md").read_text()
    for name in equations_by_name(PAGE.read_text()):
        module, parts = name, []
        while True:
            try:
                found = importlib.import_module(module)
                break
            except ModuleNotFoundError:
                module, _, last = module.rpartition(".")
                parts.insert(0, last)
        for part in parts:
            found = getattr(found, part)
        assert parts[-1] in reference, name
