"""What llama-tiny-forms fills into held-out problems and stories, and how well its sentences follow
topics.
"""

import random
import re
from pathlib import Path
from statistics import fmean

from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.search.planned.fill_in_middle import sentinels
from decoders.search.planned.topic_tokens import sentences
from explorer.corpus import read_stories
from explorer.experiments.statistics import lead
from explorer.experiments.topic_plans import BARE, Text, begun, covered, forced, table_of
from explorer.tasks import HELD_OUT_SEED, TASKS, problems
from explorer.training.evaluation.findings import Findings

FILLED = {"list_program": 40, "python": 40, "json": 40, "story": 40}
STORIES, TOKENS = 16, 40
INFILL, PLANS = "infilling.json", "plans.json"


def parts(task: str, count: int, stories: list[str]) -> list[tuple[str, str, str, str, object]]:
    """(in front, a, b, c, problem) of held-out texts: a line, or a sentence, b is taken out of the middle; in
    a text of one line it is a word.
    """
    rng, result = random.Random(f"{task} {HELD_OUT_SEED}"), []
    if task == "story":
        texts = [("", sentences(story)[:5], None) for story in stories if len(sentences(story)) >= 5][:count]
    else:
        asked = problems(task, count, HELD_OUT_SEED)
        texts = [(p.prompt, p.answer.splitlines(keepends=True), p) for p in asked]
    for front, units, problem in texts:
        if len(units) == 1:
            units = re.findall(r"\s*\S+", units[0])
        at = rng.randrange(len(units))
        result.append((front, "".join(units[:at]), units[at], "".join(units[at + 1 :]), problem))
    return result


def filled(model: LoadedModel, front: str, a: str, c: str) -> tuple[str, bool]:
    """The middle that the model writes greedily, and whether it marked it as complete."""
    form = sentinels(model)
    ids = [form.pre, *model.cut(front + a), form.suf, *model.cut(c), form.mid]
    lane = Lane("greedy", ids, {"target": model}, {}, limits=Limits(TOKENS))
    out = []
    while lane.advance():
        out = lane.trace.output()
        if out and out[-1] == form.eot:
            break
    lane.close()
    closed = bool(out) and out[-1] == form.eot
    return model.tokenizer.decode(out[: len(out) - closed], skip_special_tokens=True), closed


def infilled(model: LoadedModel, stories: list[str]) -> dict[str, dict[str, float]]:
    """Kind of text -> shares: exact, the very text; right, the checker passes the whole; closed, the model
    ended it by itself.
    """
    rows = {}
    for task, count in FILLED.items():
        exact, right, closed = [], [], []
        for front, a, b, c, problem in parts(task, count, stories):
            text, ended = filled(model, front, a, c)
            exact.append(text == b)
            closed.append(ended)
            if problem is not None:
                right.append(TASKS[task].check(problem, a + text + c).right)
        rows[task] = {
            "exact": fmean(exact),
            **({"right": fmean(right)} if right else {}),
            "closed": fmean(closed),
        }
        print(task, rows[task], flush=True)
    return rows


def measure(folder: Path, corpus: Path) -> Findings:
    """What it fills in (`infilled`), and how topics steer (`steered`)."""
    model, stories = load(str(folder)), read_stories(corpus)[1]
    chosen = [story for story in stories if 4 < len(sentences(story)) < 16][:STORIES]
    return Findings({INFILL: infilled(model, stories), PLANS: steered(model, begun(chosen))})


def steered(model: LoadedModel, chosen: list[Text]) -> dict[str, dict]:
    """How topics steer the model's text after the beginnings of texts, as in the experiment topic-plans."""
    topics = table_of(model)
    names = ("by itself", "under it", "gain", "2 s.e.", "named")
    rows = forced(model, topics, chosen)
    plans = {row[0]: dict(zip(names, [*row[1:4], 2 * row[4], row[5]], strict=True)) for row in rows}
    scores = covered(model, topics, chosen)
    base = scores[BARE]
    coverage = {}
    for way, numbers in scores.items():
        gap, error = lead(numbers, base)
        coverage[way] = {"F1": fmean(numbers), "ahead": gap, "2 s.e.": 2 * error}
    print(coverage, flush=True)
    return {"topics": plans, "coverage": coverage}
