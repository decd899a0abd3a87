"""Small Verilog modules from a description of their outputs, with marks at the ends of fragments.

A fragment ends after each keyword, identifier, number and operator. Not in `TASKS`, since only an adapter
learns it. Its Verilog consists of gates, a multiplexer, registers and a counter.
"""

import random
import re

FRAGMENT = "[FRAG]"
ASKED = "// module {}: {}\n"
MODULES = ("adder", "gate", "switch", "counter", "latch", "timer", "filter", "buffer", "router", "driver")
SIGNALS = (
    *("a", "b", "c", "data", "select", "enable", "reset", "ready", "valid", "count", "carry", "sum", "load"),
    *("done", "start", "stop", "input_bit", "output_bit", "next_state", "write_enable", "read_enable"),
)
CLOCK = "clk"
OPERATORS = {"and": "&", "or": "|", "xor": "^"}
# (description of a statement, its lines, whether its output y is a register); a, b and s are inputs
STATEMENTS = (
    ("{y} is {a} {word} {b}", ("assign {y} = {a} {sign} {b};",), False),
    ("{y} is {a} {word} not {b}", ("assign {y} = {a} {sign} ~{b};",), False),
    ("{y} is not {a}", ("assign {y} = ~{a};",), False),
    ("{y} is {a} if {s}, else {b}", ("assign {y} = {s} ? {a} : {b};",), False),
    ("{y} follows {a}", ("always @(posedge clk)", "  {y} <= {a};"), True),
    (
        "{y} follows {a}, cleared by {s}",
        ("always @(posedge clk)", "  if ({s}) {y} <= 0;", "  else {y} <= {a};"),
        True,
    ),
    ("{y} counts while {a}", ("always @(posedge clk)", "  if ({a}) {y} <= {y} + 1;"), True),
)
MAX_STATEMENTS = 3
SIGNIFICANT = re.compile(r"[A-Za-z_]\w*|\d+|<=|[=&|^~?:+@]")  # what a fragment ends with


def make_module(rng: random.Random, max_statements: int = MAX_STATEMENTS) -> tuple[str, str]:
    """(prompt, module): a comment that describes the outputs, and the matching Verilog with one to
    `max_statements` statements.
    """
    name = rng.choice(MODULES)
    signals = rng.sample(SIGNALS, 9)
    count = rng.randint(1, max_statements)
    outputs, inputs = signals[:count], signals[count : count + 4]
    sentences, body, used, registers, clocked = [], [], [], set(), False
    for y in outputs:
        says, lines, register = rng.choice(STATEMENTS)
        word = rng.choice(list(OPERATORS))
        a, b, s = rng.sample(inputs, 3)
        values = {"y": y, "a": a, "b": b, "s": s, "word": word, "sign": OPERATORS[word]}
        sentences.append(says.format(**values))
        body += [line.format(**values) for line in lines]
        used += [values[key] for key in re.findall(r"\{([abs])\}", says)]
        clocked |= register
        if register:
            registers.add(y)
    ports = [f"input {one}" for one in [CLOCK] * clocked + list(dict.fromkeys(used))]
    ports += [f"output {'reg ' * (y in registers)}{y}" for y in outputs]
    head = f"module {name}(\n" + ",\n".join(f"  {port}" for port in ports) + "\n);\n"
    return (
        ASKED.format(name, "; ".join(sentences)),
        head + "".join(f"  {line}\n" for line in body) + "endmodule\n",
    )


def marked(module: str) -> str:
    """A module with a mark at the end of each fragment."""
    return SIGNIFICANT.sub(lambda match: match[0] + FRAGMENT, module)


def unmarked(text: str) -> str:
    """A text without marks."""
    return text.replace(FRAGMENT, "")
