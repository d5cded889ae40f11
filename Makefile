# `make train` and `make test` work on a fresh machine: they make .venv from the lock first.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: train test lint types unit test-slow wheel docs hooks figures demo-agents bits race lock clean
.PHONY: results results-update results-status results-check results-page results-pong

# `make train STEPS=5000` trains for less.
train: .venv/installed
	$(BIN)/quantail train $(if $(STEPS),--steps $(STEPS))

test: lint types unit

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

# One process a core, each with one thread: tests are many and small. A file stays in one process, so
# that its fixtures are built once; in the order of their names, the long files do not come last.
unit: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

# Learning checks that take many minutes, and what needs a compiler.
test-slow: .venv/installed
	$(BIN)/pytest -m slow -s

# Whether the wheel works as a user installs it: the core alone, then with an extra. With packages on
# the local disk, 33 to 46 s on two idle cores, most of it for installing torch.
wheel: .venv/installed
	$(BIN)/python tools/check_wheel.py

# Build the docs site into site/. A broken link, a missing page or an unknown anchor fails the build.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Draw the figures of the docs again, or some of them: `make figures NAMES="watch report"`.
figures: .venv/installed
	$(BIN)/python -m tools.docs.figures $(NAMES)

# Train the agents of `quantail demo` again, for 360,000 steps in all. With KEEP=1, keep their weights
# and write their settings again.
demo-agents: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.demo_agents $(if $(KEEP),--keep-weights) $(NAMES)

# Whether the working tree learns what a commit learned, bit for bit: `make bits BASE=<commit>`. With
# AGENT, PRESET and ENV: the fingerprint of that run, here or at the commit BASE.
bits: .venv/installed
	$(BIN)/python tools/bits.py $(if $(AGENT),--fingerprint $(AGENT) $(PRESET) $(ENV) $(if $(BASE),--base $(BASE)),--base $(or $(BASE),HEAD))

# Whether the working tree trains faster than a commit, in turns: `make race BASE=<commit>`, for the presets
# ROWS, or for the trained network of a RUN. More options: `python tools/race.py --help`.
race: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python tools/race.py $(or $(BASE),HEAD) $(if $(RUN),--checkpoint $(RUN),$(ROWS))

# Go on with the queue in results/queue.toml, at the lowest priority and from a worktree of the present
# commit. Stop it at any time; given again, it goes on. `make results JOBS=2` does two runs at a time.
results: .venv/installed
	$(BIN)/python -m tools.results run --jobs $(or $(JOBS),1)

# Tell the running queue to take the present commit when its run under way is done.
results-update: .venv/installed
	$(BIN)/python -m tools.results update

# What of the queue is done, under way and left, with an estimate of the core-hours.
results-status: .venv/installed
	@$(BIN)/python -m tools.results status

# Which rows the present code would not give again, by fingerprints: up to half a minute a kind of run.
results-check: .venv/installed
	$(BIN)/python -m tools.results check

# Draw results/README.md and its figures from the tables.
results-page: .venv/installed
	$(BIN)/python -m tools.results page

# Train Pong from pixels, or resume it: two hours of training in all, on one core.
results-pong: .venv/installed
	$(BIN)/python -m tools.results pong

# Run ruff and mypy before every commit, as `make lint types` does.
hooks: .venv/installed
	$(BIN)/pre-commit install

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) install -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

# Newest versions that pyproject.toml allows. torch is named first so that it stays as pinned.
lock:
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(PIP) install torch==2.13.0 setuptools
	$(PIP) install -e '.[all,dev,docs]'
	echo '# Written by `make lock`. pandas stays below 3: arch, which rliable imports, fails on pandas 3.' > requirements.lock
	$(BIN)/pip freeze --all --exclude-editable | grep -v '^pip==' | sed 's/+cpu$$//' >> requirements.lock
	touch .venv/installed

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
