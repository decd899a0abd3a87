"""Dependencies: which earlier tokens the newest token was predicted from, as arcs over the line of tokens.

A fold over Propose, Commit and Depend(kind="attention"). Attention is where the model looked, not proof of
why; the heading says so and gives the share that is shown. Never looks ahead: when the focus moves on, the
old focus keeps its two strongest arcs in grey and hides the others, so a step costs a constant number of ops.
"""

from decoders.trace.events import Commit, Depend, Propose
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view

STRONGEST = 6  # arcs of the token in focus
KEPT = 2  # arcs that stay, thin and grey, when the focus moves on
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


@view("dependencies", "Dependencies", reads=has(Depend, kind="attention"))
class Dependencies:
    """Tokens on a line (the prompt ends at 0, new ones start at 1), arcs above, shares of the focus below."""

    def __init__(self, header: Header):
        self.header = header
        self.unknown = "attention weights" in header.lacks
        self.prompt = len(header.prompt)
        self.columns = {node: node - self.prompt + 1 for node in range(self.prompt)}  # node -> column
        self.tokens = dict(enumerate(header.prompt))
        self.looks: dict[int, list[tuple[float, int]]] = {}  # target node -> (weight, source node)
        self.column = 0
        self.focus: int | None = None
        self.drawn: list[tuple[float, int]] = []  # the focus's (weight, source) on show

    def head(self) -> Layout:
        """Title, question and layout of the view."""
        return Columns(
            question="Which earlier tokens was this one predicted from?",
            first=1 - self.prompt,
            left=84,
            left_narrow=66,
            overview="piled",
            ops=panels() + [self._token(node, "prompt", "tint") for node in range(self.prompt)],
            legend=[
                ["cell:prompt", "□", "soft", "prompt"],
                ["cell:chosen", "■", "soft", "generated"],
                ["cell:outline", "□", "ink", "source"],
                ["cell:filled", "■", "ink", "in focus"],
                ["arc", "⌒", "soft", "attention: where the model looked, not why"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: new tokens, and the move of the focus to the newest of them."""
        ops: list[Op] = []
        committed: list[int] = []
        for event in step.events:
            match event:
                case Propose():
                    self.tokens[event.node] = event.token
                case Depend() if event.kind == "attention":
                    self.looks.setdefault(event.target, []).append((event.weight, event.source))
                case Commit():
                    committed += event.nodes
        for node in committed:
            self.column += 1
            self.columns[node] = self.column
        strongest = {node: self._strongest(node) for node in committed}
        ops += [self._token(node, "chosen", "tint", strongest[node]) for node in committed]
        if committed:
            ops += self._leave()
            for node in committed[:-1]:
                ops += self._arcs(node, strongest[node][:KEPT], strong=False)
            ops += self._enter(committed[-1], strongest[committed[-1]])
        return ops

    def _token(self, node: int, state: str, fill: str, looks: tuple | list = ()) -> Op:
        """The cell of a token; `looks` are its (weight, source) pairs, named in the hover."""
        shown = self._shown(node)
        hover = [f"{shown}: prompt" if state == "prompt" else f"{shown}: token {self.columns[node]}"]
        if looks:
            hover.append(
                "looked at " + " · ".join(f"{self._shown(n)} {percent(weight)}" for weight, n in looks)
            )
        place = {"panel": "line", "x": self.columns[node], "y": 0, "w": 0.96, "h": 1}
        look = {"state": state, "fill": fill, "text": shown, "hover": hover}
        return scene.Cell(f"t{node}", node=node, **place, **look)

    def _strongest(self, node: int) -> list[tuple[float, int]]:
        """(weight, source) of `node`'s strongest sources on the line, strongest first; forgets the rest."""
        looks = [look for look in self.looks.pop(node, []) if look[1] in self.columns]
        return sorted(looks, key=lambda look: (-look[0], look[1]))[:STRONGEST]

    def _enter(self, node: int, looks: list[tuple[float, int]]) -> list[Op]:
        """Puts the focus on `node`: filled cell, arcs, tinted sources with their share, the heading."""
        self.focus, self.drawn = node, looks
        ops = [scene.Change(f"t{node}", fill="filled"), *self._arcs(node, self.drawn, strong=True)]
        for weight, source in self.drawn:
            ops.append(scene.Change(f"t{source}", state="chosen", fill="outline"))
            place = {
                "panel": "line",
                "x": self.columns[source],
                "y": 0.95,
                "priority": 2,
                "weight": round(weight, 4),
            }
            look = {"role": "ink", "size": sizes.SMALL, "align": "center"}
            ops.append(scene.Label(f"w{node}-{source}", text=percent(weight), **place, **look))
        ops.append(scene.Change("heading", lead=self._shown(node), **explained(self.drawn, self.unknown)))
        ops.append(scene.Front(self.columns[node], 0))
        if looks:
            weight, source = looks[0]
            caption = f"{self._shown(node)} looked most at {self._shown(source)}, "
            ops.append(scene.Say(f"{caption}{percent(weight)} of its attention."))
        return ops

    def _leave(self) -> list[Op]:
        """Takes the focus off its token: two arcs stay in grey, its other marks are hidden."""
        if self.focus is None:
            return []
        ops = [scene.Change(f"t{self.focus}", fill="tint")]
        for rank, (_, source) in enumerate(self.drawn):
            ops.append(
                scene.Change(
                    f"a{self.focus}-{source}", **({"strong": False} if rank < KEPT else {"gone": True})
                )
            )
            ops.append(scene.Change(f"w{self.focus}-{source}", gone=True))
            given = source < self.prompt
            ops.append(scene.Change(f"t{source}", state="prompt" if given else "chosen", fill="tint"))
        return ops

    def _arcs(self, node: int, looks: list[tuple[float, int]], strong: bool) -> list[Op]:
        """One arc per (weight, source); its height grows with its span, so that long arcs pass over short
        ones.
        """
        x1, ops = self.columns[node], []
        for weight, source in looks:
            x0 = self.columns[source]
            words = f"{self._named(source)} → {self._named(node)}: {percent(weight)} of its attention"
            place = {"panel": "arcs", "x0": x0, "x1": x1, "y": 0, "height": height(x1 - x0)}
            look = {
                "weight": round(weight, 4),
                "strong": strong,
                "hover": [words, "mean over layers and heads: where the model looked, not why"],
                "to": {"node": node},
            }
            ops.append(scene.Arc(f"a{node}-{source}", **place, **look))
        return ops

    def _named(self, node: int) -> str:
        """`␣dog (token 5)`: a token and where it stands."""
        return f"{self._shown(node)} ({'prompt' if node < self.prompt else f'token {self.columns[node]}'})"

    def _shown(self, node: int) -> str:
        return visible(self.header.vocabulary.get(self.tokens[node], b"?"))


def panels() -> list[Op]:
    """From top to bottom: heading, arcs, the line of tokens with shares below. y0 is a panel's top."""
    return [
        scene.Panel("heading", panel="heading", y0=0, y1=1, px=38, px_low=19),
        scene.Panel("arcs", y0=1, y1=0, share=1),
        scene.Panel("line", y0=-0.6, y1=1.3, px=50),
    ]


def explained(drawn: list[tuple[float, int]], unknown: bool = False) -> dict:
    """What follows the token's name: what the weight is, the share shown, a warning; a form for phones.
    unknown: the engine of the model gives no attention weights.
    """
    if unknown:
        words = ": the engine of this model gives no attention weights."
        return {"heading": words, "short": words}
    if not drawn:
        words = ": no attention was recorded for this token."
        return {"heading": words, "short": words}
    share, count = percent(sum(weight for weight, _ in drawn)), len(drawn)
    strongest = f"{NUMBERS[count]} strongest" if count > 1 else "the strongest source"
    return {
        "heading": f" was predicted from: mean attention over layers and heads, {strongest} "
        f"({share} of the attention)\ngrey: the two strongest of every other generated token. "
        "Attention shows where the model looked, not why.",
        "short": f" was predicted from: mean attention, {strongest} ({share} of it)",
    }


def height(span: int) -> float:
    """Height of an arc over `span` columns, 0 to 1: grows ever more slowly and never reaches 1."""
    return round(span / (span + 5), 4)


def percent(share: float) -> str:
    """`13 %`; one decimal below one percent."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"
