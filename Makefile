# Two commands do everything: `make run` and `make test`. Both set up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Compiled files are written even where the shell says no: both processes and each app that tests start read
# them, instead of compiling 1,500 files anew.
ENVIRONMENT = PYTHONDONTWRITEBYTECODE= PYTHONHASHSEED=0 OMP_NUM_THREADS=1

# To rewrite all asserts, so that a failed one shows its values, takes each process half a minute before its
# first test. So they run as they are written, and only tests that failed run again with their values shown.
FAILED_AGAIN = $(ENVIRONMENT) $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# A browser and threads that wait for each other are at the mercy of a busy machine. So a test of the page or the app
# that failed runs once more at once, five of them at most; the summary shows each with what failed. Tests of
# `decoders` and `visualizers` and the laws have no second try.
SECOND_TRY = --reruns 1 --max-suite-reruns 5 --rerun-show-tracebacks \
	--rerun-exclude-path tests/decoders --rerun-exclude-path tests/visualizers --rerun-exclude-path tests/laws

.PHONY: setup run test lint docs bench vllm newest

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.txt requirements-dev.txt requirements-xgrammar.txt requirements-formats.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-xgrammar.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-formats.txt
	touch $@

run: setup
	$(BIN)/python app.py $(ARGS)

test: lint
	$(BIN)/python -m tests.browser.install
	@test -x .vllm/bin/python || echo "The tests against vLLM are left out: make vllm sets up what they need."
	$(ENVIRONMENT) $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder \
		--assert=plain --durations=25 --durations-min=5 $(SECOND_TRY) || { echo "Some tests failed (above). They run again, with values:"; $(FAILED_AGAIN); exit 1; }

# Python by ruff, the types of what connects the rooms by mypy, our scripts by oxfmt and oxlint (whose settings
# lie in assets/web).
lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/oxfmt --check "assets/web/**/*.js"
	$(BIN)/oxlint assets/web

# The documentation as a website, in site/.
docs: setup
	$(BIN)/python -m mkdocs build --strict

# A second environment with a vLLM server, which wants other packages; then the tests against it.
vllm: setup
	test -x .vllm/bin/python || $(PYTHON) -m venv .vllm
	.vllm/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-vllm.txt
	.vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.vllm/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	-.vllm/bin/python -m pip install --quiet --disable-pip-version-check --no-deps arctic-inference==0.3.0
	$(BIN)/python -m pytest -m vllm tests/decoders/models/test_vllm.py tests/decoders/watch/test_vllm_itself.py

bench: setup
	$(BIN)/python -m explorer bench

# A third environment with what `pip install .` brings today, which is newer than what requirements.txt pins;
# then the tests on it (ARGS: some of them).
newest: setup
	test -x .newest/bin/python || $(PYTHON) -m venv .newest
	.newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager .
	grep -E "^(pytest|hypothesis|playwright|axe)" requirements-dev.txt > .newest/tests.txt
	.newest/bin/python -m pip install --quiet --disable-pip-version-check --requirement .newest/tests.txt
	$(BIN)/python -m tests.browser.install
	$(ENVIRONMENT) .newest/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --assert=plain $(SECOND_TRY) $(ARGS)
