"""Reward heads: what they learn from is true, and they can learn it."""

import pytest
import torch
from transformers import AutoTokenizer

from decoders.heads import Reward, Taps, Target, read_answers
from decoders.heads.scorers.reward import QUESTIONS
from explorer.tasks import Problem, problems
from explorer.training.evaluation.measure_reward import auc
from explorer.training.loop import MODELS
from explorer.training.recipes.llama_tiny_reward import PAD, UNASKED, graded_row, truths


def chain(answer: str) -> list[list[int]]:
    problem = Problem("chain", "start 3; +4; *2\n", "+4 -> 7\n*2 -> 14\nanswer 14")
    return truths(problem, list(answer))


def test_each_question_is_asked_where_it_makes_sense():
    """Steps at the ends of lines, the beginning after every letter, the outcome at the end."""
    right = chain("+4 -> 7\n*2 -> 14\nanswer 14")
    assert [row[0] for row in right if row[0] != UNASKED] == [1, 1, 1]
    assert all(row[1] == 1 for row in right) and [row[2] for row in right if row[2] != UNASKED] == [1]
    wrong = chain("+4 -> 7\n*2 -> 15\nanswer 14")
    assert [row[0] for row in wrong if row[0] != UNASKED] == [1, 0, 0]
    first = "+4 -> 7\n*2 -> 15".index("15") + 1
    assert [row[1] for row in wrong] == [1] * first + [0] * (len(wrong) - first)
    assert wrong[-1][2] == 0


def test_a_row_has_the_truth_of_its_answer_and_nothing_else():
    tokenizer = AutoTokenizer.from_pretrained(MODELS / "llama-tiny")
    for problem in problems("countdown", 5):
        tokens, truth = graded_row(tokenizer, problem, problem.answer)
        asked = [i for i, row in enumerate(truth) if row != [UNASKED] * 3]
        assert asked == list(range(asked[0], asked[-1] + 1)) and tokens[asked[-1]] == 0
        assert tokenizer.decode(tokens[asked[0] : asked[-1]]) == problem.answer
        assert all(row[1] == 1 for row in truth[asked[0] : asked[-1] + 1]) and truth[asked[-1]][2] == 1
        assert set(tokens[asked[-1] + 1 :]) <= {PAD}
    assert graded_row(tokenizer, problem, problem.answer * 50) is None


def learned(hidden: torch.Tensor, logits: torch.Tensor, truth: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a head says of each place [B, 11] of answers after a prompt of one token, after some lessons."""
    torch.manual_seed(0)
    head = Reward(Target(*(torch.zeros(4, 8) for _ in range(2)), torch.ones(8), 1e-5, 2, 2, 16, 1e4))
    taps = Taps(torch.arange(12).expand(16, 12) % 4, hidden, {}, logits)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
    before = head.loss(taps, truth).item()
    for _ in range(150):
        optimizer.zero_grad()
        head.loss(taps, truth).backward()
        optimizer.step()
    head.eval()
    assert head.loss(taps, truth).item() < before / 2
    read = zip(*read_answers(taps, torch.zeros(16, dtype=torch.long), 11), strict=True)
    said = [head.scores(*row) for row in read]
    return {question: torch.stack([row[question][1:] for row in said]) for question in QUESTIONS}


def test_the_head_learns_what_is_written_in_the_states():
    """Three questions whose answers are signs of three components."""
    hidden = torch.randn(16, 12, 8, generator=torch.Generator().manual_seed(1))
    truth = (hidden[..., :3] > 0).to(torch.int8)
    truth[:, 0] = truth[:, ::2, 0] = UNASKED
    said = learned(hidden, torch.zeros(16, 12, 4), truth)
    for at, question in enumerate(QUESTIONS):
        assert auc(said[question].flatten().tolist(), (hidden[:, 1:, at] > 0).flatten().tolist()) > 0.95


def test_the_head_remembers_that_an_earlier_token_was_unlikely():
    """States that say nothing; at one place, half of the answers have a token of small probability."""
    logits, truth = torch.zeros(16, 12, 4), torch.ones(16, 12, 3, dtype=torch.int8)
    truth[:, 0] = UNASKED
    logits[::2, 4, 5 % 4] = -9.0  # of token 5
    truth[::2, 5:] = 0
    said = learned(torch.zeros(16, 12, 8), logits, truth)["outcome"]
    assert (said[::2, 4:] < 0.3).all() and (said[1::2] > 0.6).all() and (said[::2, :4] > 0.6).all()


@pytest.mark.parametrize(
    ("scores", "truths", "area"),
    [
        ([0.1, 0.9], [0, 1], 1.0),
        ([0.9, 0.1], [0, 1], 0.0),
        ([0.5, 0.5, 0.5], [0, 1, 0], 0.5),
        ([0.2, 0.6, 0.4, 0.8], [0, 0, 1, 1], 0.75),
        ([0.3], [1], None),
    ],
)
def test_the_area_under_the_curve(scores, truths, area):
    assert auc(scores, truths) == (None if area is None else pytest.approx(area))
