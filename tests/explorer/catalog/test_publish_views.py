"""What strategies offer before they have run is what their recorded runs show."""

import json

from decoders.packages import assets
from explorer.catalog.publish_views import found_views


def test_the_published_views_are_up_to_date():
    """`python -m explorer.catalog.publish_views` writes them."""
    assert json.loads((assets() / "views.json").read_text("utf-8")) == found_views()
