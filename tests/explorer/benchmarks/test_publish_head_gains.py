"""What trained drafters gain: one file, which the table of the docs and the cards of Methods repeat."""

from explorer.benchmarks.heads_family import DRAFT_MODELS, SHORT, Gains, trained
from explorer.benchmarks.publish_head_gains import BEGIN, DOCS, END, middle, stored, table
from explorer.catalog import origins


def test_the_table_of_the_docs_is_the_stored_one():
    text = DOCS.read_text("utf-8")
    assert text.split(BEGIN)[1].split(END)[0] == table(stored())


def test_every_trained_drafter_was_measured_and_says_so_on_its_card():
    gains = stored()
    drafters = {one.drafter for one in gains}
    assert {strategy.name for strategy in trained()} | set(SHORT) | set(DRAFT_MODELS) == drafters
    eagle = next(one for one in gains if one.drafter == "eagle2")
    assert f": {eagle.against_greedy:.2f} times the speed of greedy" in origins.gain("eagle2")
    assert origins.gain("greedy") == ""


def test_the_middle_of_several_runs_is_that_of_each_figure():
    runs = [
        Gains("x", speed, 2.0, 2.0, None, share, 0.1) for speed, share in ((1.0, 0.3), (3.0, 0.1), (2.0, 0.2))
    ]
    assert middle(runs) == Gains("x", 2.0, 2.0, 2.0, None, 0.2, 0.1)
