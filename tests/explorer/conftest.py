"""What tests of server functions share: a ready loader, and the runs of a page on it."""

import importlib
import json

import pytest

from decoders.models.loading import load
from explorer import experiments
from explorer.corpus import END, STORY_MIX
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from tests.helpers import tiny_models
from tests.helpers.ready_loader import ready_loader


@pytest.fixture
def loader():
    return ready_loader()


@pytest.fixture
def runs(loader):
    found = Runs(lane_maker(loader))
    yield found
    found.close()


@pytest.fixture(scope="module")
def models(tiny_model):
    """Two models that know nothing, and a few short prompts."""
    return {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}


@pytest.fixture
def short(monkeypatch, models, tiny_model):
    """Experiments that take a second."""
    folders = {name: folder for folder, name in experiments.modules()}
    kinds = {"set_block": "set_block", "wedlm": "wedlm", "diffusion": "masked"}
    companions = {name: tiny_model(kind) for name, kind in kinds.items()}
    monkeypatch.setattr(models["target"], "_companions", companions)
    for name, constants in {
        "acceptance_by_rank": dict(TOKENS=4, SEEDS=1),
        "structured_outputs": dict(TOKENS=4),
        "public_schemas": dict(SMALL=60),
        "label_head": dict(LEARNED=8, HELD=2, STEPS=2, BATCH=2, ALONE_STEPS=2, EXAMPLES=1),
        "masking_bias": dict(SEEDS=3, COUNTS=(1, 4), DRAWS=1000),
        "python_constrained": dict(PROBLEMS=2, TOKENS=4),
        "api_calls": dict(REQUESTS=2, TOKENS=4),
        "draft_length": dict(TOKENS=6, LENGTHS=(1, 2)),
        "stages_of_a_draft": dict(
            PROMPTS=2, SEEDS=1, TOKENS=6, load=lambda name: tiny_models.make(seed=len(name))
        ),
        "distilled_drafts": dict(
            ROWS=4, HELD_OUT=2, LENGTH=8, STEPS=2, BATCH=2, load=lambda name: tiny_models.make(seed=9)
        ),
        "draft_scaling": dict(
            LAYERS=(1, 2, 3),
            READ=(32, 64, 96, 128),
            LENGTH=16,
            BATCH=2,
            INTERMEDIATE=8,
            KINDS=("stories",),
            EACH=1,
            NEW_TOKENS=6,
            BATCHES=(1, 2),
            BUDGETS=(1, 2),
        ),
        "wide_or_deep": dict(
            SHAPES={1: 32, 2: 16},
            TEXTS=4,
            LENGTH=16,
            STEPS=2,
            KINDS=("stories",),
            EACH=1,
            NEW_TOKENS=6,
            load=lambda name: tiny_models.make(seed=len(name)),
        ),
        "blind_drafts": dict(SCENES=2, HELD_OUT=1, LONGEST=8, STEPS=1, BATCH=1, GAMMAS=(3,)),
        "several_guesses": dict(TOKENS=4, GUESSES=(1, 2), DRAWS=1),
        "information_surplus": dict(TEXTS=2, TOKENS=12, HORIZONS=(2, 3), SCALES=(0.1,)),
        "when_to_stop": dict(TOKENS=6, LENGTHS=(1, 2), LIMITS=(0.3, 0.6), SEEDS=1),
        "spec_bench": dict(TOKENS=4, COUNT=1),
        "parallel_bench": dict(
            CANVAS={"upper": 4, "json": 8, "total": 8},
            COUNT=1,
            LENGTHS=(4,),
            PANELS=("json", "total"),
            VARIED=("json",),
            TRAINED={"steps": 1, "batch": 2},
        ),
        "map_of_methods": dict(TOKENS=4),
        "equal_to_greedy": dict(TOKENS=4, PROMPTS=3),
        "continuous": dict(DRAWS=500, LENGTH=40),
        "entropy_threshold": dict(COUNT=3),
        "cost_and_accuracy": dict(COUNT=1, TOKENS=3),
        "evidence": dict(COUNT=2, TOKENS=3),
        "faithful_answers": dict(COUNT=3, SEEDS=2, TOKENS=3),
        "guided_descriptions": dict(COUNT=6, EACH=1, AMONG=3, GAMMAS=(1.0, 2.0), TOKENS=4, BATCH=4),
        "hyperfitting": dict(
            SEQUENCES=4, CONTEXTS=2, LENGTH=24, READ=4, WRITTEN=8, EPOCHS=2, EVERY=1, BATCH=2
        ),
        "noisy_instructions": dict(COUNT=1, TOKENS=3),
        "many_texts": dict(PROMPTS=2, TOKENS=4, BEAMS=2, DRAWN=2),
        "topic_plans": dict(
            TEXTS={"llama-tiny-summaries": 2, "llama-tiny-forms": 2}, BEGINNINGS=2, TOKENS=8, SENTENCE=6
        ),
        "plans_and_summaries": dict(SHEETS=3, LISTS=2, TOKENS=6, ROWS=8, STEPS=2, BATCH=4),
        "open_text": dict(PROMPTS=2, SEEDS=2, TOKENS=6),
        "planning_or_filtering": dict(COUNT=2, TOKENS=3, ROLLOUTS=(1, 2)),
        "decoders_swept": dict(CLOSED=("count",), COUNT=1, STORIES=1, TOKENS=6),
        "likelihood_and_utility": dict(
            COUNT=1, EACH=2, TOKENS=3, STORIES=1, LADDER_COUNT=1, NOISE=(0.0, 1.0)
        ),
        "flows_with_feedback": dict(COUNT=2, ROUNDS=(1, 2), LENGTHS={"list_program": 3, "chain": 3}),
        "moving_states": dict(TASKS=("json",), TEXTS=2, TOKENS=30, WINDOW=10, STEPS={"sgd": (0.1,)}),
        "modes_by_length": dict(ASKED=("count", "last"), COUNT=1, LENGTHS=range(2), FORWARDS=3),
        "masks_as_modes": dict(WIDTH=16, LAYERS=1, STEPS=2, BATCH=2, TESTED=2, WRITTEN=1),
        "trees_over_states": dict(ROWS=8, LENGTH=16, STEPS=2, TEXTS=2, BEGUN=3, TOKENS=6, BACK=4),
        "neuron_bricks": dict(DOMAINS=("stories", "records"), EACH=2, TOKENS=4, RANDOM=1, DRAWS=2),
        "memory_policies": dict(
            PROMPTS=2,
            READ=8,
            TOKENS=3,
            BUDGETS={
                "LM-Infinite": ({"memory": "lm-infinite"}, "local", (4, 64)),
                "GEAR": ({"memory": "gear"}, "bits", (2, 16)),
            },
        ),
        "cache_of_architectures": dict(LENGTHS=(4, 8), SEEN=6, names=lambda: ["llama-tiny-yoco"]),
        "memory_wall": dict(CONTEXTS=(8, 16), NEW=(1, 2), TIMES=1),
        "syntax_in_layers": dict(TRAINED=6, HELD=2, TEST=2, EPOCHS=1, SHARES=(0, 1)),
        "reading_ahead": dict(SUMS=64, TOGETHER=2, ALONE=2, SEEDS=2, HELD_OUT=2),
        "serving_schedules": dict(LENGTHS=(9, 3, 2, 5), TOKENS=3, BUDGETS=(4,), REPEATS=1),
        "reading_once": dict(COUNT=1, LONGEST=3, LEARNED=("opposite",)),
        "residual_speed": dict(COUNT=1, TOKENS=4),
        "other_machines": dict(TOKENS=4, PROMPTS=1),
        "program_search": dict(VALIDATION=2, TEST=1, TOKENS=2, RANDOM=2, RUNGS=(1,), ROLLOUTS=1),
        "experts_of_neighbours": dict(
            ROWS=8, HELD_OUT=4, LENGTH=16, STEPS=3, STABLE=1, EVERY=1, PROMPTS=1, TOKENS=4, IN_A_ROW=(1, 8)
        ),
        "symbols_per_step": dict(ROWS=8, HELD_OUT=4, FRAMES=6, DRAWN=6, STEPS=2),
        "hidden_bits": dict(TEXTS=1, SEEDS=2, TOKENS=8, DRAWS=200, BUDGETS=[0.5, 2.0]),
        "routes_per_token": dict(TEXTS=6, HELD_OUT=2, LENGTH=12, STEPS=2, ROUTER_STEPS=2),
        "catalogue_beam": dict(CUSTOMERS=20, STEPS=2, QUESTIONS=4, RANDOM_QUESTIONS=2, WIDTH=16, LAYERS=1),
        "one_shot_ranking": dict(CUSTOMERS=20, STEPS=2, QUESTIONS=2, WIDTH=16, LAYERS=1),
        "evolved_drafts": dict(
            LENGTH=6, FEW=1, MANY=2, HELD_OUT=2, INITIAL=2, CHILDREN=2, SEEDS=3, PROMPTS=2, TOKENS=6
        ),
        "chain_of_thought": dict(
            LENGTHS=(2, 3), LONGEST=3, STEPS={"Z2": 2, "S3": 2, "A5": 2}, BATCH=4, WORDS=4, COUNT=1, TOKENS=4
        ),
        "sparse_pretraining": dict(
            WIDTH=24, LAYERS=1, TEXTS=4, HELD_OUT=2, LENGTH=8, LENGTHS=(1, 2), FINE=2, BATCH=2, SEEDS=2
        ),
        "fading_weights": dict(LAYERS=1, TEXTS=8, HELD_OUT=2, LENGTH=8, STEPS=4, BATCH=2, SEEDS=2),
        "decoding_on_demand": dict(
            STREAMS=1, STEPS=4, SEEDS=2, SCENES=6, TRAINING=2, BATCH=2, TOKENS=2, EVERY=(1, 2), SHARES=(0.5,)
        ),
        "decompiled_programs": dict(PROGRAMS=30, HELD_OUT=3, WIDTH=16, LAYERS=1, STEPS=2, BATCH=2, SEEDS=2),
        "topic_decoders": dict(SHEETS=20, HELD_OUT=4, WIDTH=16, STEPS=2, BATCH=2, SEEDS=2),
        "one_vector": dict(TEXTS=30, LEARNED=10, HELD_OUT=4, WIDTH=16, STEPS=2, BATCH=2, SEEDS=2),
        "bottleneck": dict(ROWS=4, OTHERS=2, LENGTH=12, STEPS=2),
        "code_search": dict(
            MODULES=3,
            LEARNED=4,
            DRAWS=2,
            STEPS=2,
            BATCH=2,
            load=lambda name: load(name) if "t5" in name else tiny_models.make(seed=3),
        ),
        "shuffled_words": dict(
            TEXTS=4,
            LENGTH=24,
            WORDS=4,
            WIDTH=16,
            LAYERS=2,
            HELD_OUT=2,
            STEPS=2,
            BATCH=2,
            SEEDS=2,
            LABELLED=4,
            TESTED=4,
            FINE=2,
            ROUNDS=(2,),
        ),
        "compression": dict(ROWS=2, LENGTH=6, COUNT=2),
        "lora_arithmetic": dict(
            TEXTS=2, STORIES=2, LENGTH=6, load=tiny_models.adapter, texts=tiny_models.labelled_texts
        ),
        "shared_prefix": dict(ROWS=(1, 2), PREFIXES=(4, 8), OWN=2, TIMES=1),
        "split_prefill": dict(
            ROWS=4, HELD_OUT=2, LENGTH=16, STEPS=2, SHAPE=dict(width=8, layers=1, heads=2, size=8), TIMES=1
        ),
        "losses_per_exit": dict(TEXTS=6, HELD_OUT=2, LENGTH=12, STEPS=2, HEAD_STEPS=2, WIDTH=16),
    }.items():
        module = importlib.import_module(f"{folders[name]}.{name}")
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a few made stories in every file that is read."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "stories").mkdir()
    for name in STORY_MIX:
        acts = "It was glad. It ran. It sat. It ate. It slept. Then it woke."
        told = [f"{name} {n} had a cat. {acts}" for n in range(3)]
        (folder / "stories" / f"{name}.txt").write_text(f"\n{END}\n".join(told), "utf-8")
    return folder


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """A folder in the form of the public benchmark's copy, with schemas of our own."""
    folder = tmp_path_factory.mktemp("benchmark")
    data = folder / "maskbench" / "data"
    data.mkdir(parents=True)
    yes_or_no = [{"valid": True, "data": True}, {"valid": False, "data": 1}, {"valid": True, "data": "no"}]
    for name, size in (("trivial---o1", 20), ("trivial---o2", 20), ("easy---o31", 60), ("easy---o33", 61)):
        held = {"schema": {"type": "boolean"}, "meta": {"full_size": size}, "tests": yes_or_no}
        (data / f"Github_{name}.json").write_text(json.dumps(held), "utf-8")
    (data / "Github_hard---o1.json").write_text("{}", "utf-8")
    return folder
