"""The sections of a model's card, as data: each is a table of what a measurement left in a file of the
model's folder, with a title and a sentence.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Section:
    """One table of a card. says: a template for facts of the model; by_column: such templates, of which the
    first counts whose column the table has; part: the part of the file that is shown, if not all of it;
    hidden: columns that are not shown; number: the format of a number, in percent if empty; numbers: other
    formats, by column. Without a title the table continues the section before it.
    """

    file: str
    title: str
    says: str = ""
    by_column: dict[str, str] = field(default_factory=dict)
    part: str = ""
    hidden: tuple[str, ...] = ()
    number: str = ""
    numbers: dict[str, str] = field(default_factory=dict)
    picture: str = ""


# how to read the share of tasks that are solved, by a column that only one measurement has
SOLVED = {
    "chosen": (
        "`sampled`: one answer at temperature 1; `chosen`: the one that the heads score highest among "
        "{samples} such answers; `best`: any of them."
    ),
    "majority": (
        "With greedy decoding; for some tasks also at temperature 1: one answer (`sampled`), any of "
        "sixteen (`best`), and the most frequent outcome of the sixteen (`majority`)."
    ),
    "1 per step": (
        "By how many tokens each forward commits (the most confident ones, in blocks of 32 positions). The "
        "tokens of an answer to the first five tasks do not depend on each other; those of the others do."
    ),
    "delta 1": (
        "With judge decoding, greedily, sixteen tokens drafted per round: `delta 1` is the target's own "
        "greedy text, `delta 0` nearly the draft's. Tokens per target forward, averaged over the tasks: "
        "{delta_pace}."
    ),
    "next token": (
        "`next token` is ordinary greedy decoding with the same weights; the others fill masks. Tokens per "
        "forward, averaged over the tasks: {pace}."
    ),
    "nearest": (
        "`tokens`: how often the most likely token is right after the right ones, sentinels included; "
        "`greedy`: whole answers; `holes`: the fills in them. `spans`: 15 % of comment and module are "
        "hidden; `identifiers`: one to three names of a module are hidden, everywhere, after its comment; "
        "`written`: the module for a comment or the comment for a module; `told`: both, after an empty "
        "source. `nearest`: the last part of a text is found by its first part, by their vectors, among "
        "all held-out texts."
    ),
    "16 steps": (
        "By the number of steps from noise to text, one forward each. The last column is the medoid of "
        "eight candidates of sixteen steps at temperature 0.1, the others one text at 0.01. `correct` are "
        "sentences made by rule, `correct (stories)` sentences of held-out stories."
    ),
    "best fixed": (
        "Sampled with the same random numbers in every column; in percent of held-out problems. `default`: "
        "temperature and top-p 1; `best fixed`: the one of {best_fixed[settings]} pairs that solves most "
        "of these very problems, which is temperature {best_fixed[temperature]:g} with top-p "
        "{best_fixed[top_p]:g}."
    ),
}
ACCEPTED = Section(
    "acceptance.json",
    "Acceptance of `{draft}` against `{target}`",
    says="In percent of the tested tokens, for held-out stories and held-out problems, four tokens drafted "
    "per round; on stories {greedy:.2f} tokens per target forward greedily, {sampled:.2f} at temperature 1.",
    hidden=("greedy tokens", "temperature 1 tokens"),
)
GUESSES = Section(
    "acceptance.json",
    "How often guesses match the target",
    says="In percent, along texts that the target writes: `depth k`: how often the best guess k tokens "
    "beyond the next one is right, given a right path; `temperature 1`: how often a token sampled at depth "
    "1 would be accepted on sampled text; `accepted x 100`: mean accepted length under greedy decoding, "
    "times 100.",
)
SECTIONS = (
    Section(
        "accuracies.json",
        "Tasks solved, in percent of held-out problems",
        by_column=SOLVED,
    ),
    Section(
        "word_error_rates.json",
        "Mean word error rates, in percent",
    ),
    Section(
        "temperatures.json",
        "Temperatures against a single one",
        says="The loss of the temperature head, in nats per token on held-out text: cross-entropy weighted "
        "by the model's own probabilities; positions where its most likely token is right count 0.4. `best "
        "single T` is the best of a grid, chosen on this very text ({temperatures}). If a model's "
        "probabilities were calibrated, this weighting would make 0.5 the best temperature everywhere, so "
        "there is little to gain.",
        part="losses",
        number=".3f",
    ),
    Section(
        "temperatures.json",
        "What the heads predict",
        says="Means on the same text: the predicted temperature and top-p, how many tokens remain to "
        "sample from, and `covered`, how often the next token of the text is among them.",
        part="nuclei",
        number=".3f",
    ),
    Section(
        "rewards.json",
        "What it changes in the reward",
        says="Stories of {compared[tokens]} tokens after {compared[prompts]} held-out prompts: the mean "
        "reward, and how much it exceeds that of controlled decoding (`cd`), which scores the target's own "
        "continuations, prompt by prompt, with twice the standard error of the difference. `direct` is "
        "Transfer Q* with this model, `args` scores bare prefixes; all three have {compared[shape]}.",
        number=".3f",
    ),
    Section(
        "ranks.json",
        "The true continuation, against …",
        says="In percent of pairs, on {ranked} prefixes from held-out stories: how often the true "
        "continuation has the higher score, by the ranker and by the mean log-probability that `{target}` "
        "gives it. 50 is chance. Sampled texts have top-p 0.9, and the same length as the true "
        "continuation.",
    ),
    Section(
        "neighbours.json",
        "What neighbours gain",
        says="Nats per token after the first chunk of held-out texts: with the neighbours found in the "
        "store (for notes: a note with the same facts in other words), with those of another text, and "
        "with the gate at 0.",
        number=".2f",
    ),
    Section(
        "rollbacks.json",
        "What is thrown away",
        says="In percent, with greedy decoding: drafted tokens that were `thrown away`, in all branches; "
        "`rounds` per written token; rounds that were `rolled back` after a rejection.",
    ),
    Section(
        "infilling.json",
        "What it fills in",
        says="In percent of held-out texts from which a line was removed (a word if there is only one "
        "line, a sentence in stories), decoded greedily after `PRE a SUF c MID`: `exact`: the very text; "
        "`right`: the whole passes the checker; `closed`: the model itself ended the middle.",
    ),
    Section(
        "adherence.json",
        "Whether summaries follow plans",
        says="On held-out fact sheets, greedily after the sheet with tags around a random plan of clauses: "
        "F1 of the clauses in the summary with those of `its plan`, or with `another plan` of as many, and "
        "the mean difference over sheets.",
        number=".2f",
    ),
    Section(
        "clauses.json",
        "Which clauses it finds",
        says="On held-out fact sheets: F1 of the clauses that their own summaries use with those of its "
        "most likely plan, of the best of its four most likely plans, and of as many first clauses. Which "
        "clauses a summary uses is partly random.",
        number=".2f",
    ),
    Section(
        "flaws.json",
        "What banning its label avoids",
        says="In percent of programs for held-out tasks; the checker is `explorer/tasks/file_programs.py`. "
        "`flawed`: with the label allowed; `announced`: those of them in which the label had a probability "
        "above one half at a flawed line; `flawed without the label`: with the ban (`label_ban`), and how "
        "many fewer that is (`avoided`). In training, a tenth of the flaws had no label.",
    ),
    Section(
        "modules.json",
        "Modules that are right",
        says="In percent of held-out comments: without its marks, the text is exactly the requested module.",
    ),
    Section(
        "accepted-lengths.json",
        "How many drafted tokens are accepted",
        says="Mean number of drafted tokens that the target accepts per round of up to 32, for held-out "
        "stories and problems: `aligned` is this model, `plain` the one that it was made from.",
        number=".2f",
    ),
    Section(
        "levels.json",
        "How far each depth is from the output",
        says="KL(p || q) in nats on held-out stories, through this lens and without one (the logit lens).",
        number=".2f",
    ),
    Section(
        "chains.json",
        "What a predicted length saves",
        says="With greedy decoding, means over held-out stories and problems: tokens per target forward, "
        "drafted tokens per token of text, and the share of drafted tokens that was accepted, for chains "
        "of fixed and of predicted length.",
        number=".2f",
    ),
    Section(
        "streams.json",
        "Whether streams agree",
        says="On held-out records at temperature 1: the share of answers whose lines all end with the "
        "colour of the first one, the share of right fields, and counts per answer. Without notes a stream "
        "cannot know the colour.",
        number=".2f",
    ),
    Section(
        "rounds.json",
        "What whole fragments cost",
        says="On held-out comments, greedily, four tokens guessed per round. `tokens per forward`: of the "
        "target; `end with a fragment`, in percent: rounds whose last accepted token is a mark; `cut`: in "
        "percent of the accepted guesses; `right`: in percent of the texts. The first two ways write the "
        "same text.",
        numbers={"tokens per forward": ".2f"},
    ),
    Section(
        "plans.json",
        "Whether topics steer",
        says="Share of a topic in the words of a sentence, the first one after {begin}: `by itself`, and "
        "`under it`, with the topic forced; with twice the standard error of the paired difference. "
        "`named`: how often the sentence has more of this topic than of any other.",
        part="topics",
        number=".2f",
    ),
    Section(
        "plans.json",
        "",
        says="F1 of the topics of a greedy text with those of the held-out text that has the same "
        "beginning, and the mean gain over the same model without topic tokens.",
        part="coverage",
        number=".2f",
    ),
    Section(
        "calibration.json",
        "Calibration of the predicted acceptance",
        says="In percent of the drafted tokens that were tested, on held-out stories and problems: "
        "`predicted` is the mean predicted probability, `accepted` the share that was accepted, "
        "`calibration error` the mean difference between the two over ten bins of predicted probability.",
        hidden=("tested",),
    ),
    Section(
        "masks.json",
        "What the mask costs",
        says="KL(full || masked) in nats at the last 64 tokens of held-out stories and of new problems, "
        "read as in decoding; `kept` is the share of channels. `as many per head`: as many as the head "
        "learned to keep.",
        number=".4f",
        picture="![Alphas, and the channels that are kept](mask.svg)",
    ),
    Section(
        "filtered.json",
        "What it saves",
        says="On held-out problems and stories, canvases of {canvas} tokens: `forwards` per text, the "
        "share of problems that are `solved`, and of texts that equal those with one token per forward "
        "(`same text`).",
        number=".2f",
    ),
)
