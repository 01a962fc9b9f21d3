"""What a terminal shows, and what it does not."""

from io import StringIO

import pytest
from rich.console import Console

from tpr_attention.console import Estimate, follow, table
from tpr_attention.runner.events import Failure, Progress, Waiting


def screen(**settings):
    text = StringIO()
    return Console(file=text, width=100, **settings), text


def test_time_left_of_groups_that_run_and_wait():
    """Ten of twenty runs take ten seconds for a tenth: a hundred in all, and as much for those that wait."""
    estimate = Estimate(runs=20, workers=1)
    assert estimate.seconds(0.0) is None
    estimate.see(Progress(0, 10, 0, 100), 0.0)
    assert estimate.seconds(1.0) is None
    estimate.see(Progress(0, 10, 10, 100), 10.0)
    assert estimate.seconds(10.0) == pytest.approx(90 + 100)
    estimate.see(Progress(0, 10, 100, 100, finished=True), 100.0)
    assert estimate.seconds(100.0) == pytest.approx(100)
    estimate.see(Progress(1, 10, 0, 100), 100.0)
    assert estimate.seconds(150.0) == pytest.approx(50)


def test_two_workers_take_half_the_time():
    estimate = Estimate(runs=40, workers=2)
    for group in (0, 1):
        estimate.see(Progress(group, 10, 0, 100), 0.0)
        estimate.see(Progress(group, 10, 50, 100), 10.0)
    assert estimate.seconds(10.0) == pytest.approx((10 + 10 + 40) / 2)


def test_failures_are_told_as_they_are():
    console, text = screen()
    failure = Failure(0, ("abc",), "ValueError: expected [/x] or [red]")
    assert follow([Progress(0, 1, 0, 4), failure], 1, 1, console).failures == [failure]
    assert text.getvalue() == "failed: ValueError: expected [/x] or [red] (abc)\n"


def test_what_is_waited_for_is_told_once():
    console, text = screen()
    waiting = Waiting(0, ("abc",), "is being trained by process 7")
    assert follow([waiting, waiting, Progress(0, 1, 4, 4, True)], 1, 1, console) == ([], {0: 0})
    assert text.getvalue() == "waiting: is being trained by process 7\n"


def test_without_a_terminal_nothing_moves():
    console, text = screen()
    assert follow([Progress(0, 1, step, 4, step == 4) for step in (0, 1, 2, 4)], 1, 1, console) == ([], {0: 0})
    assert text.getvalue() == ""


def test_a_terminal_sees_a_bar():
    console, text = screen(force_terminal=True)
    follow([Progress(0, 2, step, 4, step == 4) for step in (0, 2, 4)], 2, 1, console)
    assert "training 2 runs" in text.getvalue()
    assert "100%" in text.getvalue()


def test_tables_show_texts_as_they_are():
    console, text = screen()
    table("a [title]", ["[key]", "value"], [["[/x]", "[bold]b"]], console)
    for said in ("a [title]", "[key]", "[/x]", "[bold]b"):
        assert said in text.getvalue()
