"""The room "Memory and attention" in a real browser."""

import pytest

pytestmark = pytest.mark.browser


def test_opens(open_page):
    with open_page() as page:
        assert "shape" in page.inner_text("#room")
