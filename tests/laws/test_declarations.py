"""What every strategy says of itself: a sentence for each parameter, and defaults that it takes."""

import pytest

from decoders import registry
from tests.laws.running import every_strategy


@every_strategy
def test_a_declaration_explains_itself(name):
    strategy = registry.get(name)
    assert strategy.name == name
    assert strategy.title
    assert strategy.summary.endswith(".")
    assert strategy.family in registry.FAMILIES
    assert strategy.views
    for parameter in strategy.parameters:
        assert parameter.help.endswith(".")
        assert parameter.parse(parameter.default) == parameter.default
    assert strategy.check({}) == {p.name: p.default for p in strategy.parameters}
    with pytest.raises(ValueError, match=f"{name} has no parameter 'wings'"):
        strategy.check({"wings": 2})
