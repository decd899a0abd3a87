"""In which group an experiment stands, and in which order: the most surprising first. Plain data."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Speculation: drafts and acceptance": (
        "equal-to-greedy",
        "spec-bench",
        "when-to-stop",
        "other-machines",
        "draft-length",
        "continuous",
        "map-of-methods",
    ),
    "Search for right answers": (
        "modes-by-length",
        "likelihood-and-utility",
        "cost-and-accuracy",
        "flows-with-feedback",
        "planning-or-filtering",
        "program-search",
        "one-shot-ranking",
        "catalogue-beam",
    ),
    "Sampling and the quality of text": (
        "hyperfitting",
        "hidden-bits",
        "open-text",
        "decoders-swept",
        "entropy-threshold",
    ),
    "Steering: documents, instructions, plans": (
        "evidence",
        "topic-plans",
        "faithful-answers",
        "plans-and-summaries",
        "guided-descriptions",
        "noisy-instructions",
    ),
    "Trees and lattices: several texts at once": (
        "acceptance-by-rank",
        "several-guesses",
        "many-texts",
        "trees-over-states",
    ),
    "Inside the model: layers, experts, memory": (
        "moving-states",
        "routes-per-token",
        "experts-of-neighbours",
        "residual-speed",
        "losses-per-exit",
        "reading-once",
        "information-surplus",
        "symbols-per-step",
    ),
}
