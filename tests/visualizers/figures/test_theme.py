"""The colours of families: read on their ground, told apart by the colour-blind, and not those of states."""

from itertools import combinations

import pytest

from visualizers.figures.theme import THEMES, theme

SEEN = {  # what is seen of linear red, green and blue (Machado et al. 2009, severity 1)
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.01182, 0.04294, 0.968881),
    ),
}
SAID = ("accepted", "rejected", "live", "resampled", "bonus")  # the states that have a hue


def linear(colour: str) -> list[float]:
    """Red, green and blue of `#RRGGBB` in linear light."""
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def lab(colour: str, seen: str) -> tuple[float, float, float]:
    """CIELAB of what is seen of a colour."""
    red, green, blue = (
        min(1, max(0, sum(a * b for a, b in zip(row, linear(colour), strict=True)))) for row in SEEN[seen]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: str, other: str, seen: str) -> float:
    return sum((a - b) ** 2 for a, b in zip(lab(one, seen), lab(other, seen), strict=True)) ** 0.5


@pytest.mark.parametrize("look", THEMES)
def test_a_family_is_read_on_its_ground(look):
    ground = luminance(theme(look).surface["bg"])
    for family, colour in theme(look).family.items():
        low, high = sorted((luminance(colour), ground))
        assert (high + 0.05) / (low + 0.05) >= 4.5, family


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("look", THEMES)
def test_families_are_told_apart(look, seen):
    for one, other in combinations(theme(look).family.items(), 2):
        assert apart(one[1], other[1], seen) >= 18, (one, other)


@pytest.mark.parametrize("look", THEMES)
def test_no_family_looks_like_a_state(look):
    states = [theme(look).state[name]["color"] for name in SAID]
    for family, colour in theme(look).family.items():
        assert min(apart(colour, state, "all") for state in states) >= 18, family
