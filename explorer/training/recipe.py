"""Runs a recipe by the name of its model: a row of a table, or a file with a `main` of its own."""

from argparse import Namespace

from decoders import packages
from explorer.training import adapters, drafters, small, stages
from explorer.training.rows.adapters import Adapter
from explorer.training.rows.draft_heads import DraftHeads
from explorer.training.rows.small_architectures import SmallArchitecture
from explorer.training.rows.story_models import StoryModel
from explorer.training.rows.table import ROWS

TRAINERS = {
    StoryModel: stages.train_row,
    SmallArchitecture: small.train_row,
    DraftHeads: drafters.train_row,
    Adapter: adapters.train_row,
}


def run(name: str, args: Namespace) -> None:
    """Trains the model of this name and ships it. `args` has corpus, work and million_tokens."""
    if name in ROWS:
        TRAINERS[type(ROWS[name])](ROWS[name], args)
    else:
        packages.module(f"explorer.training.recipes.{name.replace('-', '_')}").main(args)
