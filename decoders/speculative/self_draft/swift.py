"""SWIFT: the target drafts with some of its attention and MLP blocks skipped, and finds out by itself which
ones it can skip.

Xia et al. (2024), SWIFT. The search is in layer_skip_search.py.
"""

from dataclasses import replace

from decoders.engine.layers import Layers
from decoders.lane import Lane
from decoders.parameters import integer, real, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import VERIFIER, chosen, fits
from decoders.speculative.drafters.confidence_stopping import confident_chain
from decoders.speculative.interfaces import Draft, Drafter, Pair, Seen, Verification
from decoders.speculative.self_draft.early_layers import depth_of, self_drafted
from decoders.speculative.self_draft.layer_skip_search import Search, layers_of
from decoders.trace.scores import ScoreName


def searching(parameters: dict) -> Drafter:
    """A drafter with the layers of its search; once the text is long enough, one set is tried each round."""
    searches: list[Search] = []
    # a second copy of the beginning of the text, for the model without the skipped blocks
    copies: list[int] = []

    def search(lane: Lane) -> Search:
        if not searches:
            searches.append(Search(depth_of(lane.models["target"]), parameters["skip_ratio"]))
        return searches[0]

    def layers(lane: Lane) -> Layers:
        return layers_of(search(lane).best, search(lane).total)

    def matched(lane: Lane, skipped: frozenset[int]) -> int:
        """How many tokens after the first one the model without these blocks would have written as well."""
        tokens = lane.tree.text(lane.tip)[lane.tree.trunk :][: parameters["context"] + 1]
        if not copies:
            for token in tokens[:-1]:
                copies.append(lane.tree.add(copies[-1] if copies else lane.tree.trunk - 1, token))
        part = layers_of(skipped, search(lane).total)
        predicted = lane.score(copies, "plan", layers=part).argmax(-1).tolist()
        lane.drop(copies)
        return sum(a == b for a, b in zip(predicted, tokens[1:], strict=True))

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        now, context = search(lane), parameters["context"]
        if now.over or not lane.more or lane.written <= context:
            return
        skipped, before = now.candidate(lane.chooser), now.score
        right = matched(lane, skipped)
        better = now.learn(skipped, right / context)
        used = "adopted" if before is None or better else "not adopted"
        lane.record_measure(lane.tip, ScoreName.MATCHED, right / context, level=used)
        what = f"With {layers_of(skipped, now.total)} it matches {right} of {context} tokens"
        if before is None:
            lane.note(f"{what}: where the search begins.")
        elif better:
            lane.note(f"{what}, more than the {round(before * context)} so far: it drafts from now on.")
        else:
            lane.note(f"{what}, no more than the {round(before * context)} so far: not adopted.")

    shape = confident_chain(
        parameters["num_assistant_tokens"],
        parameters["threshold"],
        parameters["temperature"],
        parameters["runners_up"],
    )
    says = "The target guesses with some of its attentions and MLPs skipped, one pass per token."
    return replace(self_drafted(layers, shape, "a thinner target", says), observe=observe)


@speculative(
    name="swift",
    title="SWIFT",
    parameters=(
        real("skip_ratio", 0.45, "Share of blocks that a draft leaves out.", low=0.0, high=1.0),
        integer("num_assistant_tokens", 8, "Maximum length of a draft (authors: 25).", low=1, high=32),
        real("threshold", 0.8, "Drafting ends where the confidence is below this.", low=0.0, high=1.0),
        switch("runners_up", True, "Also draft the next best tokens at each position."),
        integer(
            "context",
            16,
            "Number of tokens on which sets of blocks are compared (authors: 32).",
            low=1,
            high=256,
        ),
        VERIFIER,
        *GREEDY,
    ),
    papers=("swift",),
    view="layers",
    fits=fits,
)
def swift_pair(parameters: dict) -> Pair:
    """The target drafts with some of its blocks skipped, and learns on the fly which ones it can spare.

    1. A block is the attention or the MLP of a layer; the first and the last layer always run whole. At first
       both blocks of every second layer are left out.
    2. The thinner target drafts a chain until its confidence falls below threshold, with runners-up beside
       it. It reads the whole model's keys of the text; its own are discarded.
    3. The whole target checks the draft in one forward, so the text is exactly its own.
    4. Once context + 1 tokens are written, each round tries another set of skip_ratio of the blocks: how many
       of the first tokens would it have written as well? It is adopted if that is a new maximum. Every 25th
       set is the one for which a Gaussian process over all sets, fitted to the earlier scores, expects the
       most; the others are drawn at random.

    Drafts end below 0.8, as published. The search ends when more than 0.95 of the tokens match, after 300
    sets without improvement, or after 1,000 sets. It starts again with each text, whereas the authors
    continue it from one text to the next. Its passes are counted as target forwards too.
    """
    return chosen(searching(parameters), parameters)
