"""Reference acceptance: what is written can be read, and what inference benchmarks publish."""

import pytest

from decoders.models import load
from decoders.refusal import Refusal
from explorer.acceptance import golden
from explorer.acceptance.drafters import drafter
from explorer.acceptance.measuring import Settings
from explorer.acceptance.prompts import Prompt
from explorer.doctor.command import compared
from explorer.doctor.examining import Examination
from visualizers.analysis.draft_diagnosis import Cause

PUBLISHED = """# Acceptance lengths, key = num_speculative_tokens
_metadata:
  draft-model: someone/a-draft
some-model:
  thinking_on:
    1: 1.78
    2: 2.38
    3: '2.83'
  thinking_off:
    1: 1.84
"""


def test_a_published_file_is_read(tmp_path):
    path = tmp_path / "golden.yaml"
    path.write_text(PUBLISHED, encoding="utf-8")
    found = golden.read(f"{path},mode=thinking_on", "llama-tiny")
    assert (found.model, found.mode, found.lengths) == (
        "some-model",
        "thinking_on",
        {1: 1.78, 2: 2.38, 3: 2.83},
    )
    with pytest.raises(Refusal, match="Choose a mode of .* thinking_on, thinking_off"):
        golden.read(str(path), "llama-tiny")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: {b: {1: 2.5}}", "drafts of 1 tokens gain 2.5 per round; they gain from 1 to 2"),
        ("a: {b: {x: 2}}", "holds no reference acceptance"),
        ("- 1", "holds no reference acceptance"),
        ("a: [", "is not YAML"),
        ("a: {b: {}}", "holds no reference acceptance"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, text, says):
    path = tmp_path / "golden.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal, match=says):
        golden.read(str(path), "a")


def test_a_measured_curve_is_written_and_read(tmp_path):
    """Longer drafts gain no less per round, as every longer chain begins with the shorter one."""
    target = load("llama-tiny")
    one = drafter("llama-tiny-draft-distilled", target)
    prompts = [Prompt("Once upon a time, there was a little girl named Lily.")]
    *_, found = golden.curve(target, one, prompts, Settings(max_new_tokens=40, num_assistant_tokens=3))
    assert list(found) == [1, 2, 3]
    assert found[1].mean < found[3].mean
    assert all(one.low <= one.mean <= one.high for one in found.values())
    path = tmp_path / "golden.yaml"
    path.write_text(golden.written("llama-tiny", found, ["one prompt"]), encoding="utf-8")
    read = golden.read(str(path), "llama-tiny")
    assert read.lengths == {length: round(one.mean, 2) for length, one in found.items()}


def test_the_doctor_compares_with_a_reference(tmp_path):
    path = tmp_path / "golden.yaml"
    path.write_text("m: {default: {4: 3.2}}", encoding="utf-8")
    found = Examination("m", "d", [], [], drafted=4, gained=golden.Gained(2.1, 1.9, 2.3, 80))
    (less,) = compared(found, str(path)).findings
    assert (less.cause, less.value, less.other) == (Cause.REFERENCE, 2.1, 3.2)
    near = Examination("m", "d", [], [], drafted=4, gained=golden.Gained(3.0, 2.7, 3.3, 80))
    assert compared(near, str(path)).findings == []
    with pytest.raises(Refusal, match="knows drafts of 4 tokens, not of 5"):
        compared(Examination("m", "d", [], [], drafted=5, gained=near.gained), str(path))
