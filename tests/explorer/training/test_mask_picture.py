"""The picture of LeanK's alphas and mask, and the schedule that they are learned by."""

from xml.etree import ElementTree

import pytest
import torch

from explorer.training.mask_picture import by_frequency, mask_picture, panel
from explorer.training.recipes.llama_tiny_leank import schedule


def test_channels_that_turn_together_stand_side_by_side():
    assert by_frequency(8) == [0, 4, 1, 5, 2, 6, 3, 7]


def test_every_kept_channel_is_drawn_once_and_shares_are_those_of_frequencies():
    kept = torch.zeros(2, 3, 4, dtype=torch.bool)
    kept[:, :, 0] = True  # of the highest frequency every first channel, of the other none
    assert sum(path.count("M") for path in panel(kept.float(), 0)) == 6
    root = ElementTree.fromstring(mask_picture(torch.full((2, 3, 4), 0.5), kept, "a mask"))
    words = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert words[-2:] == ["50%", "0%"] and "mask: 25% of the channels" in words


def test_the_rate_rises_and_falls_over_a_fifth_and_stays_above_a_tenth():
    rates = [schedule(progress) for progress in (0.0, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0)]
    assert rates == pytest.approx([0.1, 0.5, 1, 1, 1, 0.5, 0.1])
