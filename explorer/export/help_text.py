"""The help of the page (?) as HTML: keys, words, and endpoints for scripts. All of it is our own text."""

from html import escape

KEYS = [
    ("Space", "run, pause, continue"),
    ("← →", "one step back, one step forward"),
    ("Home End", "before the first step, after the last one"),
    ("S", "decode one more step in every lane"),
    ("P", "replay the run, pause the replay"),
    ("N", "the next moment: a rejection, another text that leads, …; with Shift, the one before"),
    ("Enter", "the inspector, at the moment on show"),
    ("[ ]", "previous lane, next lane"),
    ("1 2 3 4", "go to that lane"),
    ("T", "the steps of this lane as text"),
    ("C", "the code that runs in this lane; , and . walk it event by event"),
    ("Enter", "in a picture or a text: select its newest mark; again: why this token"),
    ("← → ↑ ↓", "at a mark: parent, child, the alternatives"),
    ("L", "at a mark: the arcs and hooks that lead to this token"),
    ("Q", "while a lane is presented: a QR code that opens and runs this set-up"),
    ("Esc", "close, or leave the marks"),
    ("?", "this list"),
]
WORDS = [
    (
        "token",
        "a piece of text, often a word: the unit in which a model writes. ␣ stands for a space, "
        "↵ for a line break.",
    ),
    (
        "target, draft",
        "the model whose text you want, and a smaller one that guesses ahead for it.",
    ),
    ("forward", "one run of a model. The target's forwards are what decoding costs."),
    ("round", "the draft proposes tokens, and one target forward tests them all."),
    (
        "p, q, u",
        "the probability of a token under the target and under the draft, and the random number that "
        "decides: it is accepted if u < p / q.",
    ),
    (
        "accepted, rejected",
        "a drafted token passed its test, or did not; tokens drafted after a rejected one are never reached.",
    ),
    (
        "written instead",
        "the target's own token in place of a rejected one. A lane that samples draws it from the residual, "
        "the part of p that exceeds q: papers call it resampled.",
    ),
    (
        "bonus",
        "one more token from the target after all drafted tokens were accepted; it costs no extra forward.",
    ),
    (
        "entropy",
        "how uncertain the model is, in bits: 0 is certain, 1 like a fair coin, 3 like eight equal choices.",
    ),
    (
        "log p",
        "the logarithm of a probability; its sum over a text says how probable the text is. Closer to 0 "
        "is more probable.",
    ),
    ("beam", "one of the texts that beam search keeps side by side."),
    ("KV slots", "places in the model's memory (its cache) for the tokens it has read."),
    ("lossless", "the same text, or the same distribution of texts, as without the draft."),
]
HERE = '<span class="here"></span>'  # filled by the page with its own address
PROGRAM = """from gradio_client import Client
client = Client("{here}"{bearer})
found = client.predict("Once upon a time", "beam", {{"num_beams": 4}}, 32, api_name="/run")
print(found["text"])"""


def help_html(served: bool, token: bool = False, mcp: bool = False) -> str:
    """The contents of the help dialog. `served`: the page has an app behind it; `token`: it needs one."""
    keys = [(" ".join(f"<kbd>{escape(key)}</kbd>" for key in names.split()), says) for names, says in KEYS]
    words = [(escape(word), says) for word, says in WORDS]
    return (
        '<header><h2>Keys</h2><form method="dialog">'
        '<button aria-label="Close help" title="Close (Escape)">×</button></form></header>'
        '<div class="help-body" tabindex="0" role="group" aria-label="Keys, words and endpoints">'
        f"{listed('keys', keys)}"
        '<label class="field"><input type="checkbox" data-part="keys">'
        "<span>Keyboard shortcuts (text fields keep their own keys in any case)</span>"
        f"</label><section><h3>Words</h3>{listed('glossary', words)}</section>"
        f"{for_scripts(token, mcp) if served else ''}"
        '<section class="programs" data-part="programs" hidden>'
        "<h3>Programs that a model writes</h3><p></p></section></div>"
    )


def listed(kind: str, entries: list[tuple[str, str]]) -> str:
    """A list of terms, given as HTML, with their meanings."""
    rows = "".join(f"<div><dt>{term}</dt><dd>{escape(says)}</dd></div>" for term, says in entries)
    return f'<dl class="{kind}">{rows}</dl>'


def for_scripts(token: bool, mcp: bool) -> str:
    """The section on endpoints for programs."""
    bearer = ', headers={"Authorization": "Bearer TOKEN"}' if token else ""
    program = escape(PROGRAM.format(here="HERE", bearer=bearer), quote=False).replace("HERE", HERE)
    where = "TOKEN is at the end of the address that the app printed when it started."
    tools = f"They are MCP tools too, at <code>{HERE}gradio_api/mcp/{'?token=TOKEN' if token else ''}</code>."
    return (
        "<section><h3>For scripts and assistants</h3>"
        "<p>The endpoints /strategies, /run and /trace answer any Gradio client:</p>"
        f"<pre><code>{program}</code></pre>{f'<p>{where}</p>' if token else ''}"
        f"{f'<p>{tools}</p>' if mcp else ''}</section>"
    )
