"""Records: convert a sentence to JSON, YAML or CSV with a small schema.

Some training answers are wrong on purpose (keys in another order, a misspelt key), so that decoding under a
grammar has something to correct; the checkers accept only the schema.
"""

import csv
import io
import json
import random

from explorer.tasks.problem import Grade, Problem, Task, lines

NAMES = ("Tom", "Lily", "Ben", "Mia", "Sam", "Anna", "Max", "Lucy", "Tim", "Sara")
CITIES = ("Rome", "Paris", "London", "Berlin", "Oslo", "Lima", "Cairo", "Tokyo")
PETS = ("cat", "dog", "bird", "fish", "rabbit", "mouse")
KEYS = ("name", "age", "city", "pet")
MISSPELT = {"name": "nmae", "age": "aeg", "city": "ctiy", "pet": "pett"}
UNHELPFUL = 0.15  # share of training answers with keys in another order or misspelt


def make_record(rng: random.Random, form: str) -> Problem:
    """`Tom is 7 years old, lives in Rome and has a cat. As json:`."""
    record = {
        "name": rng.choice(NAMES),
        "age": rng.randint(1, 99),
        "city": rng.choice(CITIES),
        "pet": rng.choice(PETS),
    }
    sentence = rng.choice(
        (
            "{name} is {age} years old, lives in {city} and has a {pet}.",
            "In {city} lives {name}, {age} years old, with a {pet}.",
            "{name} from {city} has a {pet} and is {age}.",
        )
    ).format(**record)
    return Problem(form, f"{sentence} As {form}:\n", write(record, form), {"record": record})


def unhelpful(problem: Problem, rng: random.Random) -> str:
    """A training answer that the checker may reject: keys in another order, or one misspelt."""
    if rng.random() >= UNHELPFUL:
        return problem.answer
    record = dict(rng.sample(list(problem.facts["record"].items()), len(KEYS)))
    if rng.random() < 0.5:
        wrong = rng.choice(KEYS)
        record = {MISSPELT[k] if k == wrong else k: v for k, v in record.items()}
    return write(record, problem.task)


def write(record: dict, form: str) -> str:
    """The record as text in one of the three forms."""
    if form == "json":
        return json.dumps(record)
    if form == "yaml":
        return "\n".join(f"{key}: {value}" for key, value in record.items())
    return ",".join(record) + "\n" + ",".join(map(str, record.values()))


def read(text: str, form: str) -> dict | None:
    """The record in an answer; None if it cannot be parsed in this form. YAML is flat: `key: value`."""
    given = lines(text)
    if form == "json":
        try:
            record = json.loads(given[0]) if given else None
        except ValueError:
            return None
        return record if isinstance(record, dict) else None
    if form == "yaml":
        pairs = [line.partition(": ") for line in given[: len(KEYS)]]
        return {k: int(v) if v.isdecimal() else v for k, colon, v in pairs if colon}
    try:
        rows = list(csv.reader(io.StringIO("\n".join(given[:2]))))
    except csv.Error:
        return None
    if len(rows) < 2 or len(rows[0]) != len(rows[1]):
        return None
    return {k: int(v) if v.isdecimal() else v for k, v in zip(*rows, strict=True)}


def check(problem: Problem, text: str) -> Grade:
    """Checks the form, the keys in the schema's order, and the values."""
    wanted, given = problem.facts["record"], read(text, problem.task)
    if given is None:
        return Grade(False, f"The answer is not valid {problem.task.upper()}.")
    if list(given) != list(KEYS):
        return Grade(False, f"The keys must be {', '.join(KEYS)}, in this order.")
    wrong = [key for key in KEYS if given[key] != wanted[key]]
    if wrong:
        return Grade(False, f"The value of {wrong[0]} is {wanted[wrong[0]]!r}, not {given[wrong[0]]!r}.")
    return Grade(True, "Form, keys and values are right.")


TASKS = (
    Task("json", "A sentence as JSON.", lambda rng: make_record(rng, "json"), check),
    Task("yaml", "A sentence as YAML.", lambda rng: make_record(rng, "yaml"), check),
    Task("csv", "A sentence as CSV.", lambda rng: make_record(rng, "csv"), check),
)
