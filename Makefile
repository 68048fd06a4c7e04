# Everything a newcomer needs: `make demo` and `make test` set up what they use, in .venv, on first call.

PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
WORKERS := $(shell n=$$(getconf _NPROCESSORS_ONLN || echo 2); echo $$((n > 7 ? 8 : n + 1)))
VERSIONS ?= 3.11 3.12 3.13 3.14
FAST := $(addprefix tests/,claims config dialects evidence features library pipeline scoring text training verifiers test_docs.py \
	test_errors.py)

.PHONY: demo serve docs chart bulk-s3 test test-fast check matrix dist-check sbom clients client-js client-suites coverage clean

demo: .venv/.ready          ## three RAG requests through the proxy, answered by a bundled demo model server
	@$(BIN)/groundwire demo

serve: .venv/.ready         ## the proxy in front of Ollama, until you stop it
	@$(BIN)/groundwire serve --config config.yaml

test: .venv/.ready-dev      ## all tests, side by side; WORKERS=0 for one after the other
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: .venv/.ready-dev ## the tests that need no server and no large text, in under a minute
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(FAST)

check: .venv/.ready-dev     ## style, types, import contracts, and plain language
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/language.py --quiet

docs: .venv/.ready-dev      ## the documentation as a static site in build/site
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/site.py
	@echo "Read it: $(BIN)/python -m http.server --directory build/site"

chart: .venv/.ready-dev     ## the Helm chart, rendered by helm and validated against the schemas of Kubernetes
	@$(BIN)/uv sync --quiet --frozen --inexact --extra all --group chart
	@$(BIN)/python -m pytest -rs tests/test_helm.py

bulk-s3: .venv/.ready-dev   ## groundwire batch on a Dask cluster and an S3 server on loopback, which it fetches
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .bench/s3
	@$(BIN)/uv pip install --quiet --python .bench/s3/bin/python 'moto[server]'
	@$(BIN)/python -m pytest tests/bulk/test_cluster.py

matrix: .venv/.ready-dev    ## all tests on each of Python 3.11 to 3.14 that is installed; VERSIONS names others
	@failed=; for version in $(VERSIONS); do \
		if python$$version -c '' 2>/dev/null; then \
			echo "Python $$version"; \
			env=.bench/python$$version; \
			UV_PROJECT_ENVIRONMENT=$$env $(BIN)/uv sync --quiet --frozen --extra all --python python$$version \
				&& $$env/bin/python -m pytest -n $(WORKERS) --dist worksteal || failed="$$failed $$version"; \
		else echo "Python $$version: not installed, left out"; fi; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

dist-check: .venv/.ready-dev ## builds wheel and sdist, installs both without extras, and checks content, commands and size
	@$(BIN)/python tools/dist_check.py

sbom: .venv/.ready          ## the packages that the image holds, as CycloneDX in build/sbom.cdx.json
	@mkdir -p build
	@$(BIN)/uv export --quiet --frozen --no-dev --extra all --format cyclonedx1.5 --preview-features sbom-export \
		--output-file build/sbom.cdx.json

clients: .venv/.ready-dev   ## real SDKs, each directly and through the proxy; fetches them, those for Node where there is npm
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .bench/clients
	@$(BIN)/uv pip install --quiet --python .bench/clients/bin/python openai anthropic ollama litellm langchain-openai \
		llama-index-llms-openai-like 'pydantic-ai-slim[openai]'
	@mkdir -p .bench/clients/node && cp tests/clients/package.json tests/clients/*.mjs .bench/clients/node/
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix .bench/clients/node; \
		else rm .bench/clients/node/*.mjs; echo "no npm: the clients for Node are left out"; fi
	@$(BIN)/python tests/clients/check.py .bench/clients/bin/python .bench/clients/node

client-js: .venv/.ready     ## the package of clients/js: built, tested with real SDKs, and packed
	@cd clients/js && npm install --silent --no-audit --no-fund --no-package-lock && npm run --silent build
	@$(BIN)/python tools/with_demo.py npm --prefix clients/js run --silent test
	@cd clients/js && npm pack --silent

client-suites: .venv/.ready-dev ## the SDKs' own tests through the proxy; OPENAI_PYTHON and OPENAI_NODE name their sources
	@$(BIN)/python tests/clients/suites.py .bench/suites $(addprefix --python ,$(OPENAI_PYTHON)) \
		$(addprefix --node ,$(OPENAI_NODE))

coverage: .venv/.ready-dev  ## tests with coverage, of the processes that they start, too
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal
	@$(BIN)/coverage combine --quiet
	@mkdir -p build && $(BIN)/coverage json --quiet --fail-under=0 -o build/coverage.json
	@$(BIN)/coverage report
	@$(BIN)/python tools/branch_coverage.py build/coverage.json

clean:                      ## removes what was set up and built
	@rm -rf .venv .bench clients/js/build clients/js/dist clients/js/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

.venv/bin/uv:
	@test -n "$(PYTHON)" || { echo "Groundwire needs Python 3.11 or newer"; exit 1; }
	@echo "Setting up .venv with $(PYTHON) (once, about a minute)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'

.venv/.ready: .venv/bin/uv pyproject.toml uv.lock
	@$(BIN)/uv sync --quiet --frozen --inexact --no-dev --extra all
	@touch $@

.venv/.ready-dev: .venv/bin/uv pyproject.toml uv.lock
	@$(BIN)/uv sync --quiet --frozen --inexact --extra all
	@touch $@ .venv/.ready
