"""The result of a finished lane as one JSON object, the same for the command line and the endpoints."""

from decoders.search.beam.hypotheses import returned
from decoders.trace.trace import Trace


def summary(trace: Trace) -> dict:
    """`{strategy, parameters, prompt_tokens, output_tokens, text, totals, metrics, badge, ended, sequences}`.

    sequences: `{output_tokens, text, score}` of each text that a strategy with num_return_sequences returns,
    best first; for all others only the output, without a score. `model_defaults`, if there are any: the
    settings that came from the model's generation config. `trust`, of an imported lane: see `trust_of`.
    """
    return {
        "strategy": trace.strategy,
        "parameters": trace.parameters,
        "prompt_tokens": trace.prompt,
        "output_tokens": trace.output(),
        "text": trace.text(),
        "totals": trace.costs.totals(),
        "metrics": trace.costs.metrics(trace.ended),
        "badge": trace.promise,
        "ended": trace.ended,
        "sequences": sequences(trace),
        **({"model_defaults": trace.model_defaults} if trace.model_defaults else {}),
        **({"trust": trust_of(trace.trust)} if trace.trust else {}),
    }


def trust_of(record: dict) -> dict:
    """The report on an imported lane, with its sentences (`says`) and whether nothing fails (`trusted`)."""
    from decoders.explain import trust as words  # few lanes need it
    from decoders.trace.trust import Trust

    trust = Trust.from_json(record)
    return {**record, "trusted": trust.trusted, "says": words.report(trust)}


def sequences(trace: Trace) -> list[dict]:
    """The texts that a lane returns, best first."""
    texts = returned(trace) if "num_return_sequences" in trace.parameters else []
    return [
        {"output_tokens": tokens, "text": trace.text(tokens), "score": score}
        for tokens, score in texts or [(trace.output(), None)]
    ]


def before_text(prompt: str, trace: Trace) -> str:
    """The part of a prompt before the trace's own text: everything except a last token that was healed."""
    read, typed = b"".join(trace.vocabulary[t] for t in trace.prompt), prompt.encode()
    kept = next(n for n in range(len(typed), -1, -1) if read.endswith(typed[:n]))
    return typed[:kept].decode("utf-8", "ignore") if trace.parameters.get("token_healing") else prompt
