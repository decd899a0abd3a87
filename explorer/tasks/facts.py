"""Fact sheets: a few sentences about people, and a question whose answer is a span of the sheet."""

import random

from explorer.tasks.problem import Problem, Task, same_line

NAMES = ("Tom", "Lily", "Ben", "Mia", "Sam", "Anna", "Max", "Lucy", "Tim", "Sara")
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "pink", "brown")
THINGS = ("hat", "ball", "bike", "coat", "boat", "cup", "kite", "box")
PLACES = ("the garden", "the forest", "the kitchen", "the park", "the school", "the river")
FOODS = ("apples", "cake", "bread", "soup", "cheese", "rice", "nuts")


def make_facts(rng: random.Random) -> Problem:
    """Two facts on each of two to four people, in random order, and one question."""
    asked, stated = [], []
    for name in rng.sample(NAMES, rng.randint(2, 4)):
        colour, thing, place, food = (rng.choice(words) for words in (COLOURS, THINGS, PLACES, FOODS))
        facts = [
            (f"{name} has a {colour} {thing}.", f"What color is the {thing} of {name}?", colour),
            (f"{name} is in {place}.", f"Where is {name}?", place),
            (f"{name} likes {food}.", f"What does {name} like?", food),
        ]
        chosen = rng.sample(facts, 2)
        stated += [fact for fact, _, _ in chosen]
        asked += [(question, answer) for _, question, answer in chosen]
    rng.shuffle(stated)
    question, answer = rng.choice(asked)
    return Problem(
        "facts", f"{' '.join(stated)}\nQuestion: {question}\nAnswer:", f" {answer}", {"sheet": stated}
    )


TASKS = (Task("facts", "A question about a fact sheet; the answer is a span of it.", make_facts, same_line),)
