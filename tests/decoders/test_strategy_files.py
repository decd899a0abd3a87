"""The files of strategies, read without importing them, say what the imported ones say."""

import importlib
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
from decoders.strategy_files import read_parameters, strategy_modules
print(len(strategy_modules()), len(read_parameters("greedy")))
"""


def test_the_index_has_every_strategy_of_the_package():
    for module in pkgutil.walk_packages(decoders.__path__, "decoders."):
        importlib.import_module(module.name)
    declared = {name: one.run.__module__ for name, one in registry.strategies().items()}
    ours = {name: module for name, module in declared.items() if module.startswith("decoders.")}
    assert strategy_files.strategy_modules() == ours and len(ours) > 100


def test_parameters_that_are_read_are_those_that_are_declared():
    every = registry.strategies()
    read = {name: strategy_files.read_parameters(name) for name in strategy_files.strategy_modules()}
    known = {name: parameters for name, parameters in read.items() if parameters is not None}
    assert len(known) > 100
    assert known == {name: every[name].parameters for name in known}


def test_they_are_read_from_a_zipped_install(tmp_path):
    shutil.make_archive(str(tmp_path / "all"), "zip", ROOT, "decoders")
    path = {**os.environ, "PYTHONPATH": str(tmp_path / "all.zip")}
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    names, parameters = strategy_files.strategy_modules(), registry.get("greedy").parameters
    assert done.stdout.split() == [str(len(names)), str(len(parameters))]
