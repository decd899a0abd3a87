"""Training data for a model that fills holes in code: small Verilog modules after their comments with spans
or names hidden, modules for comments and comments for modules, and whole documents after an empty source.
"""

import random
import re

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from decoders.models.architectures.sentinels import random_spans, with_holes
from explorer.corpus import END, PAD, ended
from explorer.tasks.verilog import CLOCK, MODULES, SIGNALS, make_module

ARROW, HOLES = "=>", 12
SENTINELS = tuple(f"<s{n}>" for n in range(HOLES))
WORDS = r"[A-Za-z_]\w*|\d|[^\s\w]+|\s+"
NAMES = re.compile(rf"\b({'|'.join((*MODULES, *SIGNALS, CLOCK))})\b")
VOCABULARY, READ = 480, 2000  # tokens; modules that the tokenizer is made from
HELD = 10  # every tenth module is never fed
Row = tuple[list[int], list[int]]  # source, answer with its end


def module_tokenizer(longest: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE in which each name of a module is one token, and so are the sentinels and the arrow."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, PAD, ARROW, *SENTINELS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    rng = random.Random("tokenizer")
    tokenizer.train_from_iterator(("".join(make_module(rng)) for _ in range(READ)), trainer)
    return ended(tokenizer, longest)


def held(module: str) -> bool:
    """Whether a module is reserved for validation."""
    return sum(at * byte for at, byte in enumerate(module.encode(), 1)) % HELD == 0


class Holes:
    """Makes rows. tokenizer: `module_tokenizer`."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer
        self.sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS))
        self.arrow, self.end = tokenizer.convert_tokens_to_ids([ARROW, END])

    def module(self, rng: random.Random, unseen: bool = False) -> tuple[str, str]:
        """A comment and its module of one statement, fed or never fed."""
        while True:
            comment, module = make_module(rng, max_statements=1)
            if held(module) == unseen:
                return comment, module

    def names(self, module: str) -> dict[str, list[tuple[int, int]]]:
        """Each name of a module with the token spans at which it occurs."""
        places = self.tokenizer(module, return_offsets_mapping=True)["offset_mapping"]
        begins = {begin: at for at, (begin, _) in enumerate(places)}
        behind = {end: at + 1 for at, (_, end) in enumerate(places)}
        by_name: dict[str, list[tuple[int, int]]] = {}
        for match in NAMES.finditer(module):
            by_name.setdefault(match[0], []).append((begins[match.start()], behind[match.end()]))
        return by_name

    def spans(self, rng: random.Random, unseen: bool = False) -> Row:
        """Comment and module with spans hidden, 15 % of them, three tokens each on average."""
        ids = self.tokenizer("".join(self.module(rng, unseen)))["input_ids"]
        groups = [[span] for span in random_spans(len(ids), rng, max_spans=HOLES)]
        return self.closed(*with_holes(ids, groups, self.sentinels, self.end))

    def identifiers(self, rng: random.Random, unseen: bool = False) -> Row:
        """A module with one to three of its names hidden everywhere, after its comment."""
        comment, module = self.module(rng, unseen)
        names = self.names(module)
        chosen = rng.sample(sorted(names), min(len(names), rng.randint(1, 3)))
        ids = self.tokenizer(module)["input_ids"]
        source, answer = with_holes(ids, [names[one] for one in chosen], self.sentinels, self.end)
        return self.closed([*self.tokenizer(comment)["input_ids"], *source], answer)

    def written(self, rng: random.Random, unseen: bool = False) -> Row:
        """A module for its comment, or the comment for the module."""
        asked, given = rng.sample(self.module(rng, unseen), 2)
        return self.closed(
            self.tokenizer(asked)["input_ids"], [*self.tokenizer(given)["input_ids"], self.end]
        )

    def told(self, rng: random.Random, unseen: bool = False) -> Row:
        """Comment and module after an empty source."""
        return [], [*self.tokenizer("".join(self.module(rng, unseen)))["input_ids"], self.end]

    def closed(self, source: list[int], answer: list[int]) -> Row:
        """With the arrow after the source."""
        return [*source, self.arrow], answer
