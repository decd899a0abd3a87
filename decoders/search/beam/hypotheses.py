"""The sequences that a search returned, read from its trace."""

from decoders.trace.scores import Rank, ScoreName
from decoders.trace.trace import Trace

# What ranks the texts that a strategy returns: those of beam search, of MBR, and plain samples.
SCORES = (ScoreName.LENGTH_PENALISED, ScoreName.EXPECTED_UTILITY, ScoreName.SAMPLE)


def returned(trace: Trace) -> list[tuple[list[int], float]]:
    """(generated tokens, score) of each returned sequence, best first: at most num_return_sequences of them.

    Empty if the search was stopped before its end. The scores are those named in SCORES.
    """
    if not trace.steps:
        return []
    nodes = trace.nodes()
    scores = [e for e in trace.steps[-1].of(Rank) if e.name in SCORES and e.rank is not None]
    texts = []
    for score in sorted(scores, key=lambda e: e.rank)[: trace.parameters.get("num_return_sequences")]:
        tokens, node = [], score.node
        while node >= len(trace.prompt):
            node, token = nodes[node]
            tokens.append(token)
        texts.append((tokens[::-1], score.total))
    return texts
