"""The page as a whole, without a browser."""

from explorer.page.bad_requests import Known
from explorer.page.layout import build, version
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


def test_a_page_has_another_version_when_other_functions_answer_under_its_numbers():
    known = {"components": {3: frozenset({"pull", "start"})}, "endpoints": {"decode": (7, None)}}
    same = {"components": {3: frozenset({"start", "pull"})}, "endpoints": {"decode": (7, None)}}
    others = (
        {**known, "components": {4: frozenset({"pull", "start"})}},
        {**known, "endpoints": {"decode": (8, None)}},
        {**known, "events": {9: None}},
    )
    assert version(Known(**known)) == version(Known(**same))
    assert len({version(Known(**one)) for one in (known, *others)}) == 4
