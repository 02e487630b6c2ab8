"""The files of the page, without a browser."""

import re

import pytest

pytest.importorskip("uvicorn")

from ledeline.inference.headliner import Headliner
from ledeline.inference.sample_ledes import LEDES
from ledeline.server.schemas import HeadlineSchema
from ledeline.server.web_page import FILES, PAGE, example_headline


def test_it_is_small_and_asks_for_nothing_from_elsewhere() -> None:
    files = [PAGE / "index.html", *FILES.values()]
    assert sum(len(file.read_bytes()) for file in files) < 47_000
    for file in files:
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\"' )]*", file.read_text("utf-8"))
        assert [one for one in found if "www.w3.org" not in one] == []


def test_every_file_is_served_and_used() -> None:
    assert {path.name for path in PAGE.iterdir()} == {"index.html", *FILES} - {"base.css"}
    used = re.findall(r'(?:href|src)="page/([^"]+)"', (PAGE / "index.html").read_text("utf-8"))
    assert sorted(used) == sorted(FILES)


def test_the_example_is_an_answer_of_the_api(headliner: Headliner) -> None:
    found = HeadlineSchema.model_validate(example_headline(headliner))
    assert found.source == LEDES[0]
    assert found.alternatives is not None
    assert len(found.alternatives) == 3
    assert found.alignment is not None
    assert found.alignment.heat_map is not None
