"""Whether the probabilities that the acceptance head predicts are calibrated: on held-out stories and
problems, drafted and tested by the shipped pair.
"""

from pathlib import Path

from decoders.models.loading import load
from decoders.speculative.methods.specdec_pp import HEAD, OWN
from decoders.trace.trace import Trace
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import compared, model_with
from explorer.training.evaluation.measure_acceptance import NEW_TOKENS, TEMPERATURES, prompts
from visualizers.analysis.calibration import calibration_error, predictions
from visualizers.analysis.lane_stats import LaneFacts

DRAFTED, BINS, FILE = 8, 10, "calibration.json"
PREDICTORS = {"head": HEAD, "draft's own probability": OWN}


def measure(folder: Path, corpus: Path) -> Findings:
    """For each temperature and predictor the number of tokens that were predicted and tested, the mean of the
    predicted probabilities, the share that was accepted, and the calibration error over ten bins.
    """
    draft = model_with(folder)
    against = draft.heads["acceptance"].settings["against"]
    pair = {"target": load(str(folder.parent / against)), "draft": draft}
    pair["target"].name = against  # folders have long names
    asked = [prompt for group in prompts(corpus, pair["target"]).values() for prompt in group]
    settings = {"stop": 1.0, "num_assistant_tokens": DRAFTED}
    ways = {
        f"{name}, {predictor}": ("specdec_pp", {**settings, "predictor": value, "temperature": temperature})
        for name, temperature in TEMPERATURES.items()
        for predictor, value in PREDICTORS.items()
    }
    return Findings({FILE: compared(ways, {"": asked}, pair, NEW_TOKENS, calibration)})


def calibration(lanes: list[Trace]) -> dict[str, float]:
    """How well the acceptance of all tested tokens was predicted."""
    pairs = predictions([made for trace in lanes for made in LaneFacts(trace).rounds])
    return {
        "tested": len(pairs),
        "predicted": sum(probability for probability, _ in pairs) / len(pairs),
        "accepted": sum(came for _, came in pairs) / len(pairs),
        "calibration error": calibration_error(pairs, BINS),
    }
