"""A view has one name: its slug is its file, class and title. A name that it had before still finds it."""

import re

import pytest

from decoders.strategy import Strategy
from decoders.view_names import FORMER
from visualizers.registry import build, names
from visualizers.scene.view import VIEWS, Header

HEADER = Header([0], {0: b"a"}, {})


@pytest.mark.parametrize("slug", names())
def test_slug_file_class_and_title_are_one_name(slug):
    view = VIEWS[slug]
    file = view.__module__.rpartition(".")[2]
    of_class = re.sub(r"(?<!^)(?=[A-Z])", "_", view.__name__).lower()
    assert slug == view.name == file == of_class == view.title.lower().replace(" ", "_")


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_finds_the_view_and_is_no_name_of_another(former):
    assert former not in names()
    assert build(former, HEADER).name == FORMER[former]


def test_a_strategy_may_name_views_as_they_were_called():
    own = Strategy("own", "Own", "speculative", "Says.", iter, views=("draft_tree", "text"))
    assert own.views == ("draft_rounds", "text")
