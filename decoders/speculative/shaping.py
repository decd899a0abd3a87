"""The parameters that shape p and q alike before a draw or a test: those of sampling, greedy by default."""

from dataclasses import replace

from decoders.sampling import shaping

_SAMPLING = {parameter.name: parameter for parameter in shaping.SHAPING}
SHAPING = (replace(_SAMPLING["temperature"], default=0.0), _SAMPLING["top_k"], _SAMPLING["top_p"])
