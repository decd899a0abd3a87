"""What a finished lane comes to, as one JSON object: the same for the command line and the endpoints.

Knows traces only.
"""

from decoders.trace import Trace


def summary(trace: Trace) -> dict:
    """`{strategy, parameters, prompt_tokens, output_tokens, text, totals, metrics, badge, ended}`."""
    return {
        "strategy": trace.strategy,
        "parameters": trace.parameters,
        "prompt_tokens": trace.prompt,
        "output_tokens": trace.output(),
        "text": trace.text(),
        "totals": trace.costs.totals(),
        "metrics": trace.costs.metrics(),
        "badge": trace.badge,
        "ended": trace.ended,
    }
