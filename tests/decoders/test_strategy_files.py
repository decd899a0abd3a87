"""What is known of strategies without importing their files is what the imported ones say."""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import decoders
from decoders import registry, strategy_files

ROOT = Path(decoders.__file__).resolve().parents[1]
READ = """
from decoders.strategy_files import strategy_modules
print(*strategy_modules())
"""


def test_the_index_has_every_strategy_of_the_package():
    for module in pkgutil.walk_packages(decoders.__path__, "decoders."):
        importlib.import_module(module.name)
    declared = {name: one.run.__module__ for name, one in registry.strategies().items()}
    ours = {name: module for name, module in declared.items() if module.startswith("decoders.")}
    assert strategy_files.strategy_modules() == ours and len(ours) > 100


def test_the_published_declarations_are_those_of_the_strategies():
    every = registry.strategies()
    declared = {name: json.loads(json.dumps(one.declaration())) for name, one in every.items()}
    assert strategy_files.published_declarations() == declared, "run: python -m decoders.publish_strategies"
    assert all(strategy_files.read_parameters(name) == one.parameters for name, one in every.items())


def test_the_index_is_read_from_a_zipped_install(tmp_path):
    shutil.make_archive(str(tmp_path / "all"), "zip", ROOT, "decoders")
    path = {**os.environ, "PYTHONPATH": str(tmp_path / "all.zip")}
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == strategy_files.strategy_modules().keys()
