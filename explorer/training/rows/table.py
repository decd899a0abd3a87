"""The rows of all families, by name. Recipes with an idea of their own have a file each in `recipes/`.

Imports no torch, so that what lists models can read it.
"""

from explorer.training.rows import adapters, draft_heads, small_architectures, story_models
from explorer.training.rows.row import Row

ROWS: dict[str, Row] = {
    row.name: row
    for family in (story_models, small_architectures, draft_heads, adapters)
    for row in family.ROWS
}
