"""Whether the probabilities that the acceptance head predicts are calibrated: on held-out stories and
problems, drafted and tested by the shipped pair.
"""

import json
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.head_files import read_config
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from decoders.speculative.methods.specdec_pp import HEAD, OWN
from explorer.training.evaluation.measure_acceptance import NEW_TOKENS, TEMPERATURES, prompts
from visualizers.analysis.calibration import calibration_error, predictions
from visualizers.analysis.lane_stats import LaneFacts

DRAFTED, BINS, FILE = 8, 10, "calibration.json"
PREDICTORS = {"head": HEAD, "draft's own probability": OWN}


def measure(folder: Path, corpus: Path) -> None:
    """Writes calibration.json beside the head: for each temperature and predictor the number of tokens that
    were predicted and tested, the mean of the predicted probabilities, the share that was accepted, and the
    calibration error over ten bins.
    """
    config = read_config(folder.name, folder)
    (head,) = load_heads(str(folder), load(str(folder.parent / config["target"]))).values()
    pair = {
        "target": load(str(folder.parent / head.settings["against"])),
        "draft": load(str(folder.parent / config["target"])),
    }
    pair["draft"].heads["acceptance"] = head
    pair["target"].name = head.settings["against"]  # folders have long names
    asked = [prompt for group in prompts(corpus, pair["target"]).values() for prompt in group]
    result = {}
    for name, temperature in TEMPERATURES.items():
        for predictor, value in PREDICTORS.items():
            settings = {"stop": 1.0, "predictor": value, "num_assistant_tokens": DRAFTED}
            settings["temperature"] = temperature
            lanes = [
                Lane("specdec_pp", p, pair, settings, i, Limits(NEW_TOKENS)) for i, p in enumerate(asked)
            ]
            pairs = predictions([made for lane in lanes for made in LaneFacts(lane.run()).rounds])
            row = result[f"{name}, {predictor}"] = {
                "tested": len(pairs),
                "predicted": sum(probability for probability, _ in pairs) / len(pairs),
                "accepted": sum(came for _, came in pairs) / len(pairs),
                "calibration error": calibration_error(pairs, BINS),
            }
            print(f"{name}, {predictor}", row, flush=True)
    (folder / FILE).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
