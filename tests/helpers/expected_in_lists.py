"""The point of each example of constrained decoding: `SHOWS` maps its title to a check of traces."""

from explorer.tasks.file_programs import LABEL, flaws
from tests.helpers.trace_readings import forwards, statuses


def all_words_are_there(banked, plain):
    """One text holds the phrases, the other does not; both cost as many forwards."""
    wanted = [" garden", " red ball"]
    assert all(word in banked.text() for word in wanted)
    assert not any(word in plain.text() for word in wanted)
    assert forwards(banked) == forwards(plain) == len(banked.output())


def label_bias(local, wide):
    """The two softmaxes disagree, and the one over all tokens is right."""
    assert local.text().startswith(" a dog") and wide.text().startswith(" in the park")


def the_label_and_its_flaw_are_avoided(watched, banned):
    """Fewer lines use a file that is not open, and no label is written."""
    assert LABEL in watched.text() and LABEL not in banned.text()
    wrong = [len(flaws(trace.text().partition("<|")[0])) for trace in (watched, banned)]
    assert wrong[1] < wrong[0]


def rounds_end_with_fragments(whole, plain):
    """The same text; what was cut is written again, so it takes no fewer forwards."""
    assert whole.output() == plain.output() and forwards(plain) <= forwards(whole)
    assert "pruned" in statuses(whole) - statuses(plain)


SHOWS = {
    "A flaw that is announced": the_label_and_its_flaw_are_avoided,
    "One of seven answers": label_bias,
    "Rounds that end at a comma": rounds_end_with_fragments,
    "Three words that must be there": all_words_are_there,
}
