"""How unlike, how loose, how stuck?

Every strategy continues the same beginnings of stories, those that draw from several seeds. distinct: the
share of different pairs and triples of tokens among the texts of one beginning; self-BLEU: how much they say
the same, 1 if all are equal; repeated: the share of a text's runs of four tokens that it had said before;
nats: what the target finds a token's surprise, of the text as it stands.
"""

from statistics import fmean

from explorer.experiments import Chart, Line, Models, Result
from explorer.experiments.asked import decoded, own_logprob, prompts
from explorer.experiments.statistics import distinct, repetition, self_bleu

PAPERS = ()
PROMPTS, SEEDS, TOKENS = 8, 6, 64
SETTINGS: list[tuple[str, dict]] = [
    ("greedy", {}),
    ("beam", {"num_beams": 4}),
    ("contrastive_search", {"top_k": 5, "penalty_alpha": 0.6}),
    ("momentum", {}),
    ("fsd", {}),
    ("sample", {"temperature": 0.5}),
    ("sample", {"temperature": 0.7}),
    ("sample", {"temperature": 1.0}),
    ("sample", {"temperature": 1.3}),
    ("sample", {"top_k": 5}),
    ("sample", {"top_k": 20}),
    ("sample", {"top_p": 0.8}),
    ("sample", {"top_p": 0.95}),
    ("sample", {"min_p": 0.1}),
    ("sample", {"typical_p": 0.5}),
    ("sample", {"top_h": 0.5}),
    ("sample", {"epsilon_cutoff": 0.01}),
    ("sample", {"eta_cutoff": 0.004}),
    ("mirostat", {"tau": 2.5}),
    ("mirostat", {"tau": 4.0}),
]
DRAWING = ("sample", "mirostat")
CURVE = "temperature"


def run(models: Models) -> Result:
    """A row a setting; curves of the share of different triples and of the surprise over the temperature."""
    beginnings = prompts("stories", PROMPTS)
    rows, curves = [], {"distinct-3": [], "repeated": [], "self-BLEU": []}
    for name, setting in SETTINGS:
        seeds = SEEDS if name in DRAWING else 1
        groups, surprises = [], []
        for text in beginnings:
            traces = [decoded(models, name, text, TOKENS, seed, **setting) for seed in range(seeds)]
            groups.append([trace.output() for trace in traces])
            told = [(trace.prompt, trace.output()) for trace in traces]
            surprises += [-own_logprob(models, given, out) / len(out) for given, out in told]
        two, three = (fmean([distinct(group, n) for group in groups]) for n in (2, 3))
        alike = fmean([self_bleu(group) for group in groups]) if seeds > 1 else None
        again = fmean([repetition(text) for group in groups for text in group])
        said = ", ".join([name, *(f"{key} {value}" for key, value in setting.items())])
        rows.append([said, two, three, alike, again, fmean(surprises)])
        if CURVE in setting:
            for label, value in (("distinct-3", three), ("repeated", again), ("self-BLEU", alike)):
                curves[label].append([setting[CURVE], value])
    columns = ["strategy", "distinct-2", "distinct-3", "self-BLEU", "repeated", "nats"]
    stuck, drawn = max(rows, key=lambda r: r[4]), [r for r in rows if r[3] is not None]
    alike, unlike = max(drawn, key=lambda r: r[3]), min(drawn, key=lambda r: r[3])
    says = [
        f"{stuck[0]} repeats itself most: {stuck[4]:.0%} of its runs of four tokens are not new.",
        f"The texts of {alike[0]} are most alike (self-BLEU {alike[3]:.2f}), those of {unlike[0]} least "
        f"({unlike[3]:.2f}).",
    ]
    lines = [Line(label, points) for label, points in curves.items()]
    return Result(columns, rows, says, Chart("Samples and their temperature", "temperature", "share", lines))
