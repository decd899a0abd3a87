"""The point of each example of text out of order: `SHOWS` maps its title to a check of traces."""

from tests.helpers.trace_readings import forwards


def one_text_in_fewer_forwards(fast, slow, greedy):
    """The record, right in all three; many masks per forward in the first."""
    for found in (fast, slow):
        assert found.output()[: len(greedy.output())] == greedy.output()
    assert 4 * forwards(fast) < forwards(slow)


def too_low_is_wrong(leap, low, threshold):
    """Fewer forwards than with the threshold alone, and the lower tau_low, the fewer."""
    assert forwards(low) < forwards(leap) < forwards(threshold)
    assert leap.output() == threshold.output() != low.output()


SHOWS = {
    "A record out of order": one_text_in_fewer_forwards,
    "Near what is sure": too_low_is_wrong,
}
