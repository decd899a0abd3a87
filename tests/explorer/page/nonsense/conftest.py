"""The real app on tiny models for nonsense at each of its addresses, and what is wrong with its answers."""

from types import SimpleNamespace

import pytest

from decoders.watch.vllm.folder import Folder
from explorer.page.layout import build
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from tests.helpers.launched import launched
from tests.helpers.random_requests import API, Client, Findings
from tests.helpers.ready_loader import ready_loader
from tests.helpers.server_log import Heard


@pytest.fixture(scope="package")
def served(tmp_path_factory):
    """The app on tiny models: `client`, `demo`, `runs`, `functions` by name, `call`."""
    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    demo, launch = build(runs, loader, follow=Folder(tmp_path_factory.mktemp("recorded")))
    address = launched(demo, launch)
    home = next(block for block in demo.blocks.values() if getattr(block, "server_fns", None))
    client = Client(address)

    def call(name: str, data: object) -> tuple[int, bytes]:
        body = {"component_id": home._id, "fn_name": name, "session_hash": "x", "data": data}
        return client.post(f"{API}component_server", body)

    functions = {function.__name__: function for function in home.server_fns}
    yield SimpleNamespace(
        client=client,
        demo=demo,
        runs=runs,
        functions=functions,
        call=call,
        component=home._id,
        address=address,
    )
    demo.close()
    runs.close()


@pytest.fixture
def findings():
    """What is wrong with the answers to a test's nonsense, and with the log; there must be nothing."""
    found, heard = Findings(), Heard()
    with heard.listening():
        yield found
    assert not found.wrong, found.told()
    assert not heard.bad(), "\n".join(heard.bad()[:3])
