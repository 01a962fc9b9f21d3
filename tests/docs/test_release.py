"""What a release states about itself agrees: version, date, citation, changelog, supported versions."""

import re
import tomllib

import yaml

import tpr_attention
from tests.docs.test_pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_newest_entry_of_the_changelog_is_this_version():
    version, date = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", CHANGELOG, re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert version == tpr_attention.__version__ == citation["version"]
    assert date == str(citation["date-released"])


def test_the_citation_is_that_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"] + "."


def test_supported_versions_are_classified():
    lowest = re.search(r">=3\.(\d+)", PROJECT["requires-python"])[1]
    versions = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    assert versions[0] == lowest
    assert list(map(int, versions)) == list(range(int(lowest), int(versions[-1]) + 1))


def test_the_changelog_speaks_to_users():
    newest = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1]
    assert re.findall(r"^### (.*)$", newest, re.MULTILINE) == ["Added", "Changed", "Fixed"]
