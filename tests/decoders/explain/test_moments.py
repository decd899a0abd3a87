"""All moments of a recorded run, in words."""

from decoders.explain.moments import moment_sentences
from explorer.catalog import recorded_runs


def test_a_recorded_beam_search_and_a_speculative_run_tell_their_story():
    beam, speculative = recorded_runs.traces()
    said = moment_sentences(beam)
    assert (
        13,
        "Another text takes the lead; it leaves the old one at token 2: “␣in” instead of “␣there”.",
    ) in said
    assert [step for step, _ in said] == sorted(step for step, _ in said)
    rejected = {
        step.index + 1
        for step in speculative.steps
        if any(getattr(event, "status", None) == "rejected" for event in step.events)
    }
    assert {step for step, says in moment_sentences(speculative) if " is rejected" in says} == rejected
