"""What the room "Pixels" shows, read from its page, and what a user does with it."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import torch
from PIL import Image

from tpr_attention.tasks.images.frames import draw_frames

ROLES = ("shape", "scale", "orientation", "position", "colour")


def picture_of(page, key):
    """The pixels of a picture of the page, [64 64 3]."""
    address = page.get_attribute(f"[data-picture={key}]", "src")
    return np.asarray(Image.open(BytesIO(b64decode(address.partition(",")[2]))).convert("RGB"))


def frame_of(task, classes):
    return draw_frames(task.grid.table(torch.tensor([classes])), torch.float64)


def object_of(page, side):
    cells = page.eval_on_selector_all(
        f"[data-cell^='{side}-']", "cells => cells.map((cell) => Number(cell.dataset.value))"
    )
    return np.array(cells).reshape(len(ROLES), -1)


def codes_of(page):
    return [int(code) for code in page.get_attribute("[data-codes]", "data-codes").split(",")]


def pressed(page, side):
    return [page.get_attribute(f"[data-key=take-{side}-{role}]", "aria-pressed") == "true" for role in ROLES]


def settle(page):
    """Wait until the page has drawn what was asked for and the address has it."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(300)


def slide(page, key, number):
    page.evaluate(
        "([key, number]) => { const one = document.querySelector(`[data-key=${key}]`);"
        " one.value = number; one.dispatchEvent(new Event('input', { bubbles: true })); }",
        [key, number],
    )


def drag(page, source, target):
    first, last = page.locator(source), page.locator(target)
    first.scroll_into_view_if_needed()
    start, end = first.bounding_box(), last.bounding_box()
    page.mouse.move(start["x"] + 20, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(start["x"] + 40, start["y"] + start["height"] / 2 + 5)
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
