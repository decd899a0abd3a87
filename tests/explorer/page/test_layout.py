"""The page as a whole, without a browser."""

from explorer.page.layout import build
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from tests.helpers.ready_loader import ready_loader

TYPED = {"input", "change", "key_up"}  # what fires again while its last answer is still on its way


def test_what_was_typed_last_is_what_is_answered():
    """Gradio drops an event while another of its kind is pending, unless it is declared `always_last`: a slow
    answer about the name before would stay.
    """
    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    try:
        demo, _ = build(runs, loader)
        typed = [one for one in demo.fns.values() if one.fn and TYPED & {kind for _, kind in one.targets}]
        assert len(typed) > 10
        assert [one.name for one in typed if one.trigger_mode != "always_last"] == []
    finally:
        runs.close()
