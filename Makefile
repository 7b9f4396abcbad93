# An index of what can be done here; the logic lives in the programs. `make help` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/bash

TARGET  := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
BIN     := target/$(TARGET)/release
PYTHON  ?= python3
VENV    := analysis/.venv
TESTBED := $(BIN)/testbed
ARGS    ?=

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

build: ## static release binaries, used by processes and images alike
	RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --target $(TARGET) --bins

env: $(VENV)/.ready ## the Python environment of the analysis

$(VENV)/.ready: analysis/requirements.txt analysis/pyproject.toml
	@echo 'making the Python environment $(VENV): some 400 MB of packages, a minute or two'
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --requirement analysis/requirements.txt --no-deps --editable analysis
	@touch $@

training-env: $(VENV)/.training ## what training models needs beyond env

$(VENV)/.training: $(VENV)/.ready analysis/plumbline_analysis/training/requirements.txt
	@echo 'adding what training needs to $(VENV): a minute or two'
	@$(VENV)/bin/pip install --quiet --requirement analysis/requirements.txt --requirement analysis/plumbline_analysis/training/requirements.txt
	@touch $@

test: build training-env ## every test: Rust, Python, notebooks
	cargo test --workspace --locked --no-fail-fast
	$(VENV)/bin/python -m pytest -q analysis

lint: env ## formatting, clippy, ruff, dependency policy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(VENV)/bin/ruff check analysis && $(VENV)/bin/ruff format --check analysis

deny: ## licenses, sources and advisories of the dependencies (needs cargo-deny)
	cargo deny check

images: build ## the container image, from the host's static binaries
	$(TESTBED) images

up: build ## the testbed as containers: balancer on 127.0.0.1:8080, admin on 127.0.0.1:8081
	$(TESTBED) up $(ARGS)

down: build ## stop it
	$(TESTBED) down

bench: build env ## compare strategies: a table, rows, a report (ARGS='--preset paper' ...)
	$(TESTBED) bench $(ARGS)

train: build training-env ## train the latency models of predictive strategies (ARGS='--from results/NAME')
	$(TESTBED) train $(ARGS)

FINDINGS := results/findings

findings: build env ## run the sweeps of prediction; tables, judgements and a figure in results/findings
	mkdir -p $(FINDINGS)
	for s in reproduction causes features prediction bound balancers; do $(BIN)/twin sweep sweeps/$$s.json --out $(FINDINGS)/$$s.csv || exit; done
	$(VENV)/bin/python -m plumbline_analysis findings $(FINDINGS)

matrix: build env ## the matrix of 288 scenarios, twelve minutes on two idle cores; judged with the findings
	mkdir -p $(FINDINGS)
	for s in matrix matrix-close; do $(BIN)/twin sweep sweeps/$$s.json --out $(FINDINGS)/$$s.csv || exit; done
	$(VENV)/bin/python -m plumbline_analysis findings $(FINDINGS)

CELLS := results/cells
CELL  := $(TESTBED) bench --blocks 7 --burn-fraction 0.02 --no-report
DRAWN := $(BIN)/request-generator generate --apis 10 --urls 7 --runs 300 --seed 5 --size-cv 0.2 --arrivals poisson:60%

cells: build env ## four telling cells of the findings on real workers, ten minutes each, in results/cells
	mkdir -p $(CELLS)
	$(DRAWN) --sizes list:20,40,60,90,120,160,220,300,400,600 --name light --out $(CELLS)/light.json
	$(DRAWN) --sizes list:10,10,10,20,20,20,40,40,40,1800 --name heavy --out $(CELLS)/heavy.json
	$(CELL) --workload $(CELLS)/light.json --cores 0.8,0.6,0.4 --mips-per-core 28000 --load 0.8 --tell-work-left \
	  --strategies 'weighted-least-request,wl-mc,wl-mc:reports=work,oracle-marginal' --out $(CELLS)/s-0.8 $(ARGS)
	$(CELL) --workload $(CELLS)/light.json --cores 0.8,0.6,0.4 --mips-per-core 28000 --load 0.6 \
	  --strategies 'weighted-least-request,wl-mc:objective=own,wl-mc,oracle-own' --out $(CELLS)/s-0.6 $(ARGS)
	$(CELL) --workload $(CELLS)/heavy.json --mips-per-core 5600 --load 0.7 --discipline fcfs \
	  --strategies 'weighted-least-request,wl-mc:discipline=fcfs,oracle-marginal:discipline=fcfs' --out $(CELLS)/w-0.7-fifo-heavy $(ARGS)
	$(CELL) --workload $(CELLS)/light.json --mips-per-core 5600 --load 0.8 \
	  --strategies 'weighted-least-request,polled-least-request,polled-own-sends,smooth-weighted-round-robin' --out $(CELLS)/w-0.8-stale $(ARGS)

report: build env ## write the newest result's report again
	$(TESTBED) report $(ARGS)

smoke: build env ## the whole line in about twenty seconds on an idle machine
	$(TESTBED) smoke $(ARGS)

RACERS  := race/rust/target/release

race-twin: build ## the twin's speed beside other simulators of the same model (ARGS='--rounds 5')
	test -x race/.venv/bin/python || $(PYTHON) -m venv race/.venv
	race/.venv/bin/pip install --quiet --requirement race/requirements.txt
	cargo build --release --locked --manifest-path race/rust/Cargo.toml --target-dir race/rust/target
	if [ -e /usr/include/simgrid/s4u.hpp ]; then g++ -O2 -std=c++17 race/simgrid_model.cpp -o $(RACERS)/simgrid -lsimgrid; fi
	race/.venv/bin/python race/race.py --twin $(BIN)/twin --racers $(RACERS) $(ARGS)

clean: ## remove what was built, not the results
	cargo clean
	rm -rf dist $(VENV) race/.venv race/rust/target

.PHONY: help build env training-env test lint deny images up down bench train findings matrix cells report smoke race-twin clean
