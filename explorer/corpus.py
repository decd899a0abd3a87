"""What the models read: stories of the corpus, problems of explorer/tasks, the shared tokenizer, and rows.

Every batch is a function of how many tokens were read before it, so training can stop and continue anywhere.
"""

import random
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from decoders.refusal import Refusal
from explorer.tasks import TASKS
from explorer.tasks.records import unhelpful

END, PAD = "<|endoftext|>", "<|pad|>"
VOCABULARY, CONTEXT = 4096, 512
ROW = 256  # tokens a training row
LONG_EVERY = 4  # in the mixed stage every fourth batch has rows as long as the context
HELD_OUT = 100  # every 100th story is kept for validation
IGNORED = -100  # label of tokens that no loss is taken from

# Share of each file's stories that goes into the mix: simple stories whole, the harder ones in part.
STORY_MIX = {
    "tinystories_sample": 1.0,
    "tinyfabulist_fables": 1.0,
    "snakes_child": 1.0,
    "snakes_summarised_stories": 1.0,
    "snakes_stories": 1.0,
    "snakes_slice_of_life": 1.0,
    "african_storybook_en": 1.0,
    "pratham_storyweaver_en": 1.0,
    "snakes_bedtime": 0.1,
    "snakes_campfire": 0.1,
}
# Tasks that take longer to learn are seen more often than the others.
HARD = {
    "sum",
    "difference",
    "column_sum",
    "word_problem",
    "countdown",
    "list_program",
    "python",
    "sudoku",
    "latin",
    "count",
    "sort",
    "facts",
    "json",
}
GLAD = re.compile(r"\b(happy|happily|smiled|laughed|joy|fun|loved|proud|glad|excited)\b")
SAD = re.compile(r"\b(sad|sadly|cried|tears|lonely|afraid|lost|hurt|scared|sorry)\b")
MIDDLE_PROMPT = "Begin: {begin}\nEnd: {end}\nMiddle:"  # a story whose middle comes last
TAGGED, FILLED = 0.06, 0.06  # shares of stories with a mood in front, or with the middle last


def read_stories(corpus: Path, mix: dict[str, float] = STORY_MIX) -> tuple[list[str], list[str]]:
    """Returns (training stories, held-out stories) of the files in `mix`, shuffled with a fixed seed. Raises
    Refusal with one sentence if a file is missing.
    """
    missing = [name for name in mix if not (corpus / "stories" / f"{name}.txt").exists()]
    if missing:
        raise Refusal(f"The corpus {str(corpus)!r} lacks stories/{missing[0]}.txt; it takes all of them.")
    train, held = [], []
    for name, share in mix.items():
        stories = [s.strip() for s in (corpus / "stories" / f"{name}.txt").read_text("utf-8").split(END)]
        stories = [s for s in stories if s]
        random.Random(name).shuffle(stories)
        for index, story in enumerate(stories[: int(len(stories) * share)]):
            (held if index % HELD_OUT == 0 else train).append(story)
    random.Random(0).shuffle(train)
    return train, held


def mood(story: str) -> str | None:
    """`Happy` or `Sad` where the words of a story leave no doubt."""
    glad, sad = len(GLAD.findall(story)), len(SAD.findall(story))
    if glad >= 4 and glad >= 4 * sad:
        return "Happy"
    return "Sad" if sad >= 4 and sad >= 2 * glad else None


def training_text(story: str, rng: random.Random) -> str:
    """A story as it goes into training: now and then with its mood in front, or with its middle last."""
    u = rng.random()
    if u < TAGGED and mood(story):
        return f"{mood(story)} story: {story}"
    sentences = first_sentences(story)
    if TAGGED <= u < TAGGED + FILLED and len(sentences) >= 4:
        begin, middle, end = around(sentences, rng.randrange(1, len(sentences) - 2))
        return f"{MIDDLE_PROMPT.format(begin=begin, end=end)} {middle}"
    return story


def first_sentences(story: str) -> list[str]:
    """The sentences that a story begins with; the last one may be cut."""
    return re.split(r"(?<=[.!?]) ", story[:600])


def around(sentences: list[str], at: int) -> tuple[str, str, str]:
    """All sentences before one, that sentence, and the two after it."""
    return " ".join(sentences[:at]), sentences[at], " ".join(sentences[at + 1 : at + 3])


def ended(tokenizer: Tokenizer, longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer as transformers has it: END begins and ends texts, PAD fills. longest: tokens of a text."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=PAD,
        model_max_length=longest,
        clean_up_tokenization_spaces=False,
    )


def shared_tokenizer(stories: list[str], folder: Path) -> PreTrainedTokenizerFast:
    """Byte-level BPE of 4,096 tokens with single digits; trained once, then read from `folder`."""
    if (folder / "tokenizer.json").exists():
        return PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer = Tokenizer(models.BPE())
    words = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    fast = ended(tokenizer, CONTEXT)
    fast.save_pretrained(folder)
    return fast


def pack(stories: list[str], tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """All stories one after the other, END between them: one array of token ids [T]."""
    ids = []
    for start in range(0, len(stories), 1000):
        for row in tokenizer([s + END for s in stories[start : start + 1000]])["input_ids"]:
            ids.append(np.array(row, dtype=np.int16))
    return np.concatenate(ids)


def rows_of(tokens: np.ndarray, offset: int = 0) -> torch.Tensor:
    """Cuts tokens [T] into rows [T // ROW, ROW] starting at `offset`."""
    count = (len(tokens) - offset) // ROW
    return torch.from_numpy(tokens[offset : offset + count * ROW].astype(np.int64)).view(count, ROW)


def story_rows(tokens: np.ndarray, seen: int, batch: int, row: int = ROW) -> torch.Tensor:
    """The rows [batch, row] of packed stories that follow after `seen` tokens; each epoch has its own order
    and offset.
    """
    per_epoch = len(tokens) // row - 1
    epoch, first = divmod(seen // row, per_epoch)
    generator = np.random.default_rng(epoch)
    offset = int(generator.integers(row))
    order = generator.permutation(per_epoch)
    chosen = order[np.arange(first, first + batch) % per_epoch]
    return torch.from_numpy(
        np.stack([tokens[offset + r * row : offset + (r + 1) * row] for r in chosen]).astype(np.int64)
    )


def task_rows(
    tokenizer: PreTrainedTokenizerFast, seed: str, batch: int, row: int = ROW
) -> tuple[torch.Tensor, torch.Tensor]:
    """Fresh problems, packed: (rows [batch, row], labels [batch, row]); only answers and their ends count."""
    rng = random.Random(f"tasks {seed}")
    names = [name for name in TASKS for _ in range(3 if name in HARD else 1)]
    ids, labels = [], []
    while len(ids) < batch * row:
        made = [TASKS[rng.choice(names)].make(rng) for _ in range(32)]
        answers = [unhelpful(p, rng) if p.task in ("json", "yaml", "csv") else p.answer for p in made]
        asked = tokenizer([p.prompt for p in made])["input_ids"]
        given = tokenizer([answer + END for answer in answers])["input_ids"]
        for prompt, answer in zip(asked, given, strict=True):
            ids += prompt + answer
            labels += [IGNORED] * len(prompt) + answer
    size = batch * row
    rows, wanted = (torch.tensor(part[:size], dtype=torch.long).view(batch, row) for part in (ids, labels))
    return rows, wanted


def mixed_rows(
    stories: np.ndarray, tokenizer: PreTrainedTokenizerFast, seen: int, batch: int, tasks: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch after `seen` tokens, `tasks` of its rows problems and the others stories: (rows, labels).

    With tasks, every fourth batch has half as many rows of twice the length, so that all places of the
    context are learned.
    """
    if not tasks:
        rows = story_rows(stories, seen, batch)
        return rows, rows
    row = CONTEXT if seen // (batch * ROW) % LONG_EVERY == 0 else ROW
    batch = batch * ROW // row
    many = round(batch * tasks)
    rows = labels = story_rows(stories, round(seen * (batch - many) / batch), batch - many, row)
    problems, answers = task_rows(tokenizer, str(seen), many, row)
    return torch.cat([rows, problems]), torch.cat([labels, answers])


@dataclass(frozen=True)
class Texts:
    """All that a recipe reads: tokenizer, packed training stories [T], held-out rows [R, ROW]."""

    tokenizer: PreTrainedTokenizerFast
    stories: np.ndarray
    held: torch.Tensor


def prepare(corpus: Path, work: Path) -> Texts:
    """Reads the corpus; the tokenizer is trained in `work` if it is not there yet."""
    train, held = read_stories(corpus)
    tokenizer = shared_tokenizer(train, work / "tokenizer")
    rng = random.Random(1)
    stories = pack([training_text(story, rng) for story in train], tokenizer)
    held_rows = rows_of(pack(held, tokenizer))
    print(
        f"{len(train)} stories, {len(stories) / 1e6:.1f} M tokens; {len(held_rows)} rows held out", flush=True
    )
    return Texts(tokenizer, stories, held_rows)
