"""docs/generation_config.md says of each option of `GenerationConfig` where it is here, or why it is not."""

import re
from pathlib import Path

from transformers import GenerationConfig

from decoders.registry import strategies

TABLE = Path(__file__).resolve().parents[2] / "docs" / "generation_config.md"


def rows() -> dict[str, str]:
    """Option -> what the table says of it."""
    found = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            options, said = line.strip("| ").split(" | ", 1)
            found.update(dict.fromkeys(re.findall(r"`(\w+)`", options), said))
    return found


def test_the_table_names_every_option_of_this_version_of_transformers():
    options = {name for name in vars(GenerationConfig()) if not name.startswith("_")}
    assert options - rows().keys() == set()


def test_what_the_table_says_is_here_is_a_parameter_or_a_strategy():
    declared = {p.name for s in strategies().values() for p in s.parameters}
    names = strategies().keys() | declared
    for option, said in rows().items():
        if said.startswith(("penalties", "beam search", "strategies that", "greedy,")):
            assert option in declared, option
        for name in re.findall(r"(?:the strategy|of the strategy|parts of the strategy) `(\w+)`", said):
            assert name in names, (option, name)
    assert "num_assistant_tokens" in declared and "prompt_lookup_num_tokens" in declared
