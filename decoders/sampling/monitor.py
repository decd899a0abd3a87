"""Monitor-guided decoding: a static analysis allows only names that exist after a dot.

Agrawal et al. (2023), Guiding Language Models of Code with Global Context using Monitors. The monitors are in
constraints/monitors.py.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from decoders.constraints.intersection import Intersection
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.monitors import (
    MODES,
    ArgumentMonitor,
    MemberMonitor,
    decoded,
    monitored,
    names_used,
)
from decoders.lane import Lane
from decoders.parameters import choice, free_text, real, switch
from decoders.registry import strategy
from decoders.sampling.next_token import next_token
from decoders.strategy import Part

ARGUMENTS = "A call has as many arguments as its function takes, and a new object as many as it has fields."


@strategy(
    name="monitor",
    title="Monitor-guided decoding",
    family="sampling",
    parameters=(
        free_text(
            "project",
            "",
            "Python declarations in addition to those in the prompt, such as those of other files.",
        ),
        choice("monitor", "every character", "When the analysis is consulted.", MODES),
        switch("arguments", True, ARGUMENTS),
        real(
            "temperature",
            0.0,
            "Below 1 the distribution is sharper, above 1 flatter; 0 is greedy.",
            low=0.0,
            high=100.0,
        ),
    ),
    papers=("guiding-language-models-of-code-with-global",),
    view="constraint",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        Part("monitor", parameters["monitor"], MODES[parameters["monitor"]]),
        *([Part("monitor", "arguments", ARGUMENTS)] if parameters["arguments"] else []),
    ],
)
def monitor(lane: Lane) -> Iterator[None]:
    """Writes code under a static analysis: after a dot only names that the object has may follow.

    1. The monitor is inactive until the text ends in a dot. Then it asks the analysis for the legal names R;
       if there are none, it stays inactive.
    2. While it is active, a token is allowed if it begins a name in R, or is a name in R followed by a
       character that ends names, such as a bracket. What was written is removed from the names: `R = {r
       without s}`.
    3. The first character that ends a name deactivates it. While it is inactive, nothing is changed.

    The analysis reads declarations in the prompt, in the text so far and in `project`: classes with fields
    and methods, enums, functions, and the classes of variables. A second monitor counts the arguments of
    calls. Where several are active, all of them must allow a token. A class may also declare the order in
    which its methods must be called (typestate), in a comment such as `# protocol: start -> open; open ->
    read, close`: then only methods that are next in this order may follow the dot. Branches of the code are
    not followed; calls count in the order of their lines. For every name the trace records which token
    declares it.

    "Last character" is the published form: a dot inside a token activates nothing, and the characters after
    the end of a name in the same token are not checked.
    """
    target, given = lane.models["target"], lane.parameters
    prompt = b"".join(target.bytes_of(token) for token in lane.trace.prompt)
    vocabulary = vocabulary_of(target, lane.eos)
    members, call = monitored(given["project"])
    monitors = [MemberMonitor(vocabulary, members, prompt, given["monitor"])]
    if given["arguments"]:
        monitors.append(ArgumentMonitor(vocabulary, call, prompt))
    constraint = Intersection(monitors)
    lane.constrain(constraint)
    linked = open_name(decoded(prompt))  # place up to which names have been looked up
    while lane.more:
        logits = lane.score([lane.tip])  # [1, V]
        target_logprobs = lane.distribution([lane.tip], logits)[0]
        if next_token(lane, logits, target_logprobs, target_logprobs) is None:
            return
        linked = link_names(lane, given["project"], linked)
        yield


def link_names(lane: Lane, project: str, begin: int) -> int:
    """For each complete name after the character `begin`, records which token declares it; returns the place
    up to which all names are recorded.
    """
    nodes = lane.tree.path(lane.tip)
    pieces = [decoded(lane.models["target"].bytes_of(lane.tree.tokens[node])) for node in nodes]
    ends, text = list(accumulate(map(len, pieces))), "".join(pieces)
    for declared, used in names_used(project, text, begin):
        source, target = (nodes[bisect_right(ends, place)] for place in (declared, used))
        lane.depend(source, target, 1.0, "declaration")
    return open_name(text)


def open_name(text: str) -> int:
    """Where an unfinished name after a dot begins; the end of the text if there is none."""
    before, dot, name = text.rpartition(".")
    return len(before) if dot and (not name or name.isidentifier()) else len(text)
