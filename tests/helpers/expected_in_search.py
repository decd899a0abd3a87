"""The point of each example of sampling, contrast and search: `SHOWS` maps its title to a check of traces."""

import math

from decoders.search.beam.hypotheses import returned
from decoders.search.stepwise.scorers import Text, arithmetic, is_json
from decoders.trace.events import Note, Propose
from decoders.trace.scores import Measure, Rank, Score, Table
from decoders.trace.spans import Part
from decoders.trace.trace import Trace
from explorer.experiments.plans_and_summaries import ranked
from explorer.experiments.statistics import distinct
from explorer.tasks.own_tests import pass_rate
from tests.helpers.trace_readings import forwards, statuses, total
from visualizers.analysis.loops_and_thinking import IN_LOOP, OUTSIDE, loops_and_thinking


def repeated(trace: Trace) -> float:
    """The share of token trigrams that have occurred in the text before."""
    text = trace.output()
    threes = [tuple(text[i : i + 3]) for i in range(len(text) - 2)]
    return 1 - len(set(threes)) / len(threes)


def shared(trace: Trace) -> int:
    """The length of the common prefix of the texts that were ranked last."""
    nodes, ranked = trace.nodes(), {}
    for event in trace.steps[-1].events:
        if isinstance(event, Score) and event.rank is not None:
            ranked[event.node] = None
    texts = []
    for node in ranked:
        path = []
        while node >= len(trace.prompt):
            path.append(nodes[node][1])
            node = nodes[node][0]
        texts.append(path[::-1])
    assert len(texts) > 1
    return next(
        (i for i, column in enumerate(zip(*texts, strict=False)) if len(set(column)) > 1), len(texts[0])
    )


def beam_is_likelier(greedy, beam):
    assert total(beam) > total(greedy) and len(beam.output()) == len(greedy.output())


def greedy_loops(greedy, *others):
    assert repeated(greedy) > 0.15
    assert all(repeated(other) < repeated(greedy) / 2 for other in others)


def drafts_pass_in_the_loop(greedy, speculative):
    report = loops_and_thinking(speculative)
    assert greedy.output() == speculative.output() and report.longest.copies > 10
    assert report.row(IN_LOOP).acceptance > 0.9 > 0.7 > report.row(OUTSIDE).acceptance


def a_budget_ends_reasoning(*traces):
    for trace in traces:
        report = loops_and_thinking(trace)
        assert report.spent == 8 and report.forced  # those of the prompt count too
        assert Part.ANSWER in report.parts


def an_anti_model_repeats_less(greedy, *others):
    assert all(repeated(other) < repeated(greedy) for other in others)
    assert all(forwards(trace) == len(trace.output()) for trace in others)


def truth(trace: Trace) -> float:
    """The share of the written steps of a chain that are true."""
    before = b"".join(trace.vocabulary[t] for t in trace.prompt).decode()
    return arithmetic(Text(before, trace.text(), True), {})


def false_steps_are_not_gone_on_with(greedy, searched):
    assert truth(greedy) < 1 == truth(searched)


def pieces_are_drawn_again(sampled, cards):
    rewards = [e.total for step in cards.steps for e in step.of(Rank) if e.name == "reward"]
    assert "rejected" in statuses(cards)
    assert rewards[-1] >= 0.5 > rewards[0]
    assert forwards(cards) > forwards(sampled)


def rounds(trace: Trace) -> list[list[Score]]:
    """The scores of each round's texts, best first."""
    found = [[e for e in step.of(Rank) if e.name == "reward"] for step in trace.steps]
    return [scores for scores in found if scores]


def what_fits_goes_on(ranked, sampled):
    found = rounds(ranked)
    assert [len(scores) for scores in found] == [8] * 4
    assert max(e.total for e in found[-1]) > max(e.total for e in found[0])
    assert forwards(ranked) > forwards(sampled) and "pruned" in statuses(ranked)


def the_best_of_many_is_right(best, greedy):
    assert truth(greedy) < 1 == truth(best)
    (scores,) = rounds(best)
    assert len(scores) == 12 and scores[0].total > scores[-1].total


def shares_of_the_target(low, high, greedy):
    def share(trace):
        sources = [e.source for step in trace.steps for e in step.of(Propose)]
        return sources.count("target") / len(sources)

    assert share(high) < share(low) < share(greedy) == 1.0


def looks_ahead_where_unsure(adaptive, greedy):
    levels = [e.level for step in adaptive.steps for e in step.of(Measure) if e.name == "entropy in nats"]
    assert {"at once", "looked ahead"} == set(levels)
    assert forwards(adaptive) > forwards(greedy)


def hotter_is_less_likely(*traces):
    cool, plain, hot = (total(t) / len(t.output()) for t in traces)
    assert cool > plain > hot


def heads_set_a_temperature_for_each_token(learned, plain):
    scores = [e for step in learned.steps for e in step.of(Measure) if e.scale is not None]
    hot, kept = ([e.total for e in scores if e.name == name] for name in ("temperature", "top_p"))
    assert len(hot) == len(kept) == len(learned.output()) and max(hot) > min(hot)
    assert sum(hot) / len(hot) < 1 and sum(kept) / len(kept) < 1
    assert learned.output() != plain.output() and forwards(learned) == len(learned.output())


def continuations_decide(greedy, transferred, bare):
    def values(trace):
        return {round(e.parts["value"], 3) for s in trace.steps for e in s.of(Rank) if e.name == "total"}

    sources = [{e.source for step in t.steps for e in step.of(Propose)} for t in (greedy, transferred, bare)]
    assert ["lookahead" in found for found in sources] == [False, True, False]
    assert len(values(transferred)) > 1 and transferred.output() != greedy.output()
    assert forwards(transferred) > 6 * forwards(greedy) and forwards(bare) == len(bare.output())


def tail_is_less_likely(cut, whole):
    assert total(cut) / len(cut.output()) > total(whole) / len(whole.output())


def gained(trace: Trace) -> float:
    """How much more probable the wanted view makes a token than the second view does, on average."""
    scores = [e for step in trace.steps for e in step.of(Measure) if e.name == "contrast"]
    others = [next(v for name, v in s.parts.items() if name != "wanted") for s in scores]
    return sum(s.parts["wanted"] - other for s, other in zip(scores, others, strict=True)) / len(scores)


def a_stronger_contrast_gains_more(greedy, weak, strong):
    assert gained(strong) > gained(weak) > 0
    assert strong.output() != greedy.output()
    assert forwards(strong) == 2 * len(strong.output())


def the_mixture_is_sent_elsewhere(greedy, weak, strong):
    """Every layer of the weak view reads a token with one expert, and the strong one with two."""
    a_stronger_contrast_gains_more(greedy, weak, strong)
    scores = [e for step in weak.steps for e in step.of(Table) if e.name.endswith("experts")]
    counts = {name: {len(e.rows) for e in scores if e.name == name} for name in {e.name for e in scores}}
    assert counts == {"strong experts": {2}, "weak experts": {1}}


def an_amateur_opens_the_loop(greedy, *contrasted):
    for trace in contrasted:
        assert repeated(trace) < repeated(greedy) and gained(trace) > 0
        totals = trace.costs.totals()
        assert totals["draft_forwards"] == totals["target_forwards"] == len(trace.output())


def the_code_is_not_the_paper(code, paper, greedy):
    def apart(trace):
        scores = [e.total for step in trace.steps for e in step.of(Measure) if e.name == "divergence"]
        return sum(scores) / len(scores)

    assert apart(code) > math.log(2) > apart(paper) > 0  # a Jensen-Shannon divergence ends at ln 2
    assert forwards(code) == len(code.output()) == forwards(paper) == len(paper.output())
    assert code.output() != paper.output() != greedy.output() != code.output()


def groups_part_earlier(beam, diverse):
    assert shared(diverse) < shared(beam)


def proven_likelier(search, greedy):
    said = [e.text for step in search.steps for e in step.events if isinstance(e, Note)]
    assert total(search) >= total(greedy) and "has a higher score" in said[-1]


def answers_with_a_span(exact, greedy):
    text, answer = exact.prompt, exact.output()[:-1]
    assert any(text[i : i + len(answer)] == answer for i in range(len(text))) and forwards(exact) < 6
    if greedy.output() != exact.output():
        said = [e.text for step in exact.steps for e in step.events if isinstance(e, Note)]
        assert "another span" in said[-1] or "leaves the passage" in said[-1]


def merges(lattice, beam):
    said = [e.text for step in lattice.steps for e in step.events if isinstance(e, Note)]
    paths = [int(text.split(": ")[1].split(" ")[0].replace(",", "")) for text in said if " paths to " in text]
    assert "merged" in statuses(lattice) and paths == sorted(paths) and paths[-1] > 4


def drafts_at_the_cost_of_one(superposed, beam):
    """As many texts as beam search, in as many forwards of one token each."""
    texts, beams = ({tuple(text) for text, _ in returned(trace)} for trace in (superposed, beam))
    assert len(texts) == len(beams) == 3 and forwards(superposed) == len(superposed.output())
    tokens = [trace.costs.totals()["target_tokens"] - len(trace.prompt) for trace in (superposed, beam)]
    assert tokens[0] == len(superposed.output()) - 1 and tokens[1] > 2.5 * tokens[0]


def draws_that_never_repeat(drawn, beam):
    """Four texts each; those that were drawn part earlier."""
    texts, beams = ([tuple(text) for text, _ in returned(trace)] for trace in (drawn, beam))
    assert len(set(texts)) == len(texts) == len(beams) == 4
    assert shared(drawn) < shared(beam)


def a_value_finds_its_word(guided, spoiled, plain):
    assert "happy" in guided.text() and "happy" not in plain.text()
    assert total(plain) > total(guided) and total(plain) > total(spoiled)


def trying_finds_the_word(tried, greedy):
    visits = [e for step in tried.steps for e in step.of(Rank) if e.name == "visits"]
    assert max(e.total for e in visits) >= 24 and "ran" in tried.text() and "ran" not in greedy.text()


def the_text_that_others_agree_with(mbr: Trace, sample: Trace) -> None:
    utilities = {s.node: s.total for s in mbr.steps[-1].of(Rank) if s.name == "expected_utility"}
    assert len(utilities) == 12 and mbr.output() != sample.output()
    assert max(utilities.values()) == returned(mbr)[0][1] > list(utilities.values())[-1]


def the_shortest_of_many(alone, race):
    """Its own sample number 0 is the single one, so the race takes no longer."""
    assert len(race.output()) <= len(alone.output()) and forwards(race) == len(race.output())
    assert "end-of-text" in race.ended


def looks_ahead(phi, plain):
    """Every text that was continued had been weighted by a lookahead of its own, and that is its cost."""
    scores = [e for step in phi.steps for e in step.of(Rank) if e.name == "foresight"]
    assert len(phi.steps) > 1 and any(e.rank is None for e in scores) and "pruned" in statuses(phi)
    assert phi.costs.totals()["target_tokens"] > 3 * plain.costs.totals()["target_tokens"]


def plans_no_worse_than_greedy(planned, greedy):
    """Greedy's text is the first that is completed; the output is the best of several."""
    found = [e for step in planned.steps for e in step.of(Rank) if e.name == "text_value"]
    first, best = found[0].total, max(e.total for e in found)
    assert found[-1].total == best >= first and len({e.node for e in found}) > 1
    assert best > first or planned.output() == greedy.output()


def surprise_is_as_asked(low, high):
    few, many = (-total(t) / len(t.output()) / math.log(2) for t in (low, high))
    assert few < 2.0 < many


def letters_are_read(whole, squeezed):
    """All letters where each is a sign; with two in one sign, the rarer of them is lost."""
    read = [[e for s in t.steps for e in s.of(Measure) if e.name == "letter"] for t in (whole, squeezed)]
    assert [len(letters) for letters in read] == [6, 6]
    assert all(e.parts["right"] for e in read[0])
    lost = [e for e in read[1] if not e.parts["right"]]
    assert lost and any(e.level == "b → a" for e in lost)


def tests_are_passed(greedy, *searched):
    """No search passes fewer of the prompt's own examples than greedy, and one passes all of them."""
    prompt = b"".join(greedy.vocabulary[t] for t in greedy.prompt).decode()
    rates = [pass_rate(prompt, t.text().removesuffix("<|endoftext|>")) for t in (greedy, *searched)]
    assert min(rates[1:]) >= rates[0] and max(rates[1:]) == 1.0
    assert all("rejected" in statuses(trace) for trace in searched)


def is_json_and_learned(asap, sampled):
    """Its text is JSON, and it has met dead ends on the way."""
    assert is_json(Text("", asap.text().removesuffix("<|endoftext|>"), True), {})
    assert "rejected" in statuses(asap) and forwards(asap) >= len(asap.output())


def the_end_was_written_first(plain, *jumping):
    def zones(trace):
        sources = [event.source for step in trace.steps for event in step.of(Propose)]
        return [zone for zone in dict.fromkeys(sources) if zone != "placed"]

    assert zones(plain) == ["prefix"]
    for trace in jumping:
        order = zones(trace)
        assert order.index("suffix") < order.index("middle") and "forced" in statuses(trace)


def a_plan_is_followed(own, planned):
    def topics(trace):
        words = [trace.vocabulary[token].decode() for token in trace.output()]
        return [word for word in words if word.startswith("<t") and word.endswith(">")]

    assert topics(planned) == [f"<{name}>" for name in planned.parameters["plan"].split()]
    assert topics(own) != topics(planned) and own.output() != planned.output()


def plans_differ_more_than_beams(plans, beams):
    scores = [e for step in plans.steps for e in step.of(Score)]
    levels = [e.level for e in scores if e.name == "reranker"]
    assert len(levels) == len(set(levels)) == 4
    kept = [e.total for e in scores if e.name == "adherence"]
    assert sum(kept) / len(kept) > 0.7
    lists = ranked(plans), [tokens for tokens, _ in returned(beams)]
    assert distinct(lists[0], 2) > distinct(lists[1], 2)


SHOWS = {
    "The end before the middle": the_end_was_written_first,
    "A summary to a plan": a_plan_is_followed,
    "Four plans, four summaries": plans_differ_more_than_beams,
    "Programs that pass their tests": tests_are_passed,
    "Grammar-aligned JSON (ASAp)": is_json_and_learned,
    "A word between the lines": letters_are_read,
    "Most like all of them": the_text_that_others_agree_with,
    "Whoever ends first": the_shortest_of_many,
    "Steps that are checked": false_steps_are_not_gone_on_with,
    "Pieces that must be good enough": pieces_are_drawn_again,
    "What fits the prompt": what_fits_goes_on,
    "The best of twelve answers": the_best_of_many_is_right,
    "A look ahead": looks_ahead,
    "Planned for two words": plans_no_worse_than_greedy,
    "As surprising as asked": surprise_is_as_asked,
    "Greedy and a more likely text": beam_is_likelier,
    "Going round in circles": greedy_loops,
    "A text that loops": drafts_pass_in_the_loop,
    "A budget of thinking": a_budget_ends_reasoning,
    "Against an anti-model": an_anti_model_repeats_less,
    "The small model where it is sure": shares_of_the_target,
    "A look ahead where it is unsure": looks_ahead_where_unsure,
    "Three temperatures": hotter_is_less_likely,
    "A temperature for every token": heads_set_a_temperature_for_each_token,
    "What a friendlier model would make of it": continuations_decide,
    "Without the tail": tail_is_less_likely,
    "More of the prompt": a_stronger_contrast_gains_more,
    "LM guidance: one model's content, another's style": a_stronger_contrast_gains_more,
    "Where the sky is green": a_stronger_contrast_gains_more,
    "Not without the instruction": a_stronger_contrast_gains_more,
    "Expert against amateur": an_amateur_opens_the_loop,
    "Experts that were not chosen": the_mixture_is_sent_elsewhere,
    "Late layers against early ones": the_code_is_not_the_paper,
    "Beams that keep apart": groups_part_earlier,
    "The most likely text of all": proven_likelier,
    "An answer out of the text": answers_with_a_span,
    "Four texts, none of them twice": draws_that_never_repeat,
    "Beams that want a word": a_value_finds_its_word,
    "Tried many times before each token": trying_finds_the_word,
    "Many texts in one graph": merges,
    "Three drafts for one": drafts_at_the_cost_of_one,
}
