"""`make docs` fails where an image has no alt text, code is not run, or a link leads nowhere."""

import pytest
from docs.extensions.checks import main, markdown_files, problems_of_documents, problems_of_pages

from tests.docs.test_pages import ROOT

CODE = "```{}\nimport torch\n```\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.md").write_text("(label)=\n# A heading, `here`\n")
    (tmp_path / "docs" / "figure.png").write_bytes(b"")
    return tmp_path


def problems(project, text, name="docs/page.md"):
    (project / name).write_text(text)
    return problems_of_documents(project)


@pytest.mark.parametrize(
    "text",
    [
        "![A figure](figure.png)\n",
        "```{figure} figure.png\n:alt: A figure\n```\n",
        '<img src="figure.png" alt="A figure">\n',
        "[other](other.md), [there](other.md#a-heading-here), [label](other.md#label), [web](https://example.org/x.md)\n",
        "# Here\n\n[up](#here)\n",
        CODE.format("{code-cell} ipython3"),
        "% not a cell: needs two machines\n" + CODE.format("python"),
        "```\nmake docs\n```\n",
        "---\nfile_format: mystnb\n---\n\n# Title\n",
    ],
)
def test_what_is_right_passes(project, text):
    assert problems(project, text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Text\n\n![](figure.png)\n", "docs/page.md:3: image without alt text: figure.png"),
        ("```{figure} figure.png\n:alt:\n```\n", "docs/page.md:1: image without alt text: figure.png"),
        ("```{image} figure.png\n```\n", "docs/page.md:1: image without alt text: figure.png"),
        ('<img src="figure.png">\n', "docs/page.md:1: image without alt text"),
        ('<img src="figure.png" alt="">\n', "docs/page.md:1: image without alt text"),
        ("![A figure](lost.png)\n", "link to a file that is not there: lost.png"),
        ("[lost](lost.md)\n", "link to a file that is not there: lost.md"),
        ("[lost](other.md#nowhere)\n", "link to a heading that is not there: other.md#nowhere"),
        ("[lost](#nowhere)\n", "link to a heading that is not there: #nowhere"),
        (CODE.format("python"), "docs/page.md:1: Python code that is not run"),
        (CODE.format(""), "docs/page.md:1: Python code that is not run"),
        ("% not a cell:\n" + CODE.format("python"), "Python code that is not run"),
        ("% not a cell: reason\n\nText\n\n" + CODE.format("python"), "docs/page.md:5: Python code that is not run"),
    ],
)
def test_what_is_broken_is_named(project, text, problem):
    (found,) = problems(project, text)
    assert problem in found


def test_files_of_the_root_are_checked_and_their_code_is_left_to_tests(project):
    assert problems(project, CODE.format("python"), "README.md") == []
    (found,) = problems(project, "[lost](docs/lost.md)\n", "README.md")
    assert found == "README.md:1: link to a file that is not there: docs/lost.md"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<img src="_images/a.png">', "image without alt text: _images/a.png"),
        ('<img src="_images/a.png" alt="_images/a.png">', "image without alt text: _images/a.png"),
        ('<a href="lost.html">x</a>', "link to a page that is not there: lost.html"),
        ('<a href="other.html#lost">x</a>', "link to an id that is not there: other.html#lost"),
        ('<a href="#lost">x</a>', "link to an id that is not there: #lost"),
        ('<script src="https://example.org/x.js"></script>', "loads from another host: https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads from another host: //example.org/x.css"),
    ],
)
def test_what_is_broken_in_a_built_page_is_named(tmp_path, body, problem):
    (tmp_path / "page.html").write_text(body)
    (tmp_path / "other.html").write_text('<p id="here"></p>')
    assert problems_of_pages(tmp_path) == [f"page.html: {problem}"]


def test_a_built_page_that_is_right_passes(tmp_path):
    (tmp_path / "page.html").write_text(
        '<h1 id="top">x</h1><a href="#top">x</a><a href="page.html#top">x</a><a href="https://example.org">x</a>'
        '<img src="a.png" alt="A figure">'
    )
    assert problems_of_pages(tmp_path) == []


def test_the_exit_code_and_the_output(project, capsys):
    assert main(project, None) == 0
    (project / "docs" / "page.md").write_text("![](figure.png)\n")
    assert main(project, None) == 1
    assert capsys.readouterr().out == "docs/page.md:1: image without alt text: figure.png\n"


def test_the_documents_of_this_project_pass():
    assert len(markdown_files(ROOT)) > 50
    assert problems_of_documents(ROOT) == []
