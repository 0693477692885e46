# Every target makes the environments it needs, and makes them again when what they are made from changes.
# `make PYTHON=/path/to/python` says which interpreter to build them with.

.PHONY: help demo test test-main test-recording test-debugger test-langgraph test-temporal test-playwright test-agents \
	test-autogen test-autogen070 test-crewai test-crewai-commands test-crewai-oldest test-mcp test-openai2 \
	test-playwright164 test-oldest environment-crewai check docs bench bench-planted stress constraints clean

help:
	@echo "make demo    record, replay and verify a support agent, without a key or a network"
	@echo "make test    all tests: newest and oldest clients, both generations of the OpenAI SDK"
	@echo "make check   style and types"
	@echo "make docs    the adapters' conformance, into docs/conformance and the README"
	@echo "make bench   measurements beside those of a peer, into docs/benchmarks.md"
	@echo "make bench-planted  how often bisect names planted faults, in each framework; takes hours, and goes on where it was"
	@echo "make stress  the long version of the randomized tests, and more tests with the oldest versions"
	@echo "make clean   remove what the others made"

demo:
	@.ci/environment demo
	@.venv-demo/bin/python examples/demo.py

# The longest first: CI does three at a time, and the short ones fill what is left.
test: test-debugger test-recording test-oldest test-playwright test-crewai test-langgraph test-crewai-commands \
	test-temporal test-autogen test-playwright164 test-crewai-oldest test-autogen070 test-openai2 test-mcp test-agents
	@.ci/browser --last

test-main: test-recording test-debugger test-langgraph test-temporal test-playwright

# What is done with a record, and what records and replays: about as much work each, so that CI can do them side by side.
DEBUGGER = $(addprefix tests/, adapter bisecting cli conformance debugger edits forks log policy)
# What needs an environment of its own.
OUTSIDE = tests/langgraph/calls/test_outside.py
AGENTS = tests/temporal/agents
AUTOGEN = tests/autogen tests/ag2
CREWAI = tests/crewai
# Its import takes seconds, and these start process after process: CI does them beside the rest. The last runs the agents
# of conformance, after which some tests of models fail in the same process: what that leaves behind is not known yet.
CREWAI_COMMANDS = $(addprefix tests/crewai/, docs modes/test_again.py session/test_commands.py session/test_quiet.py \
	bisect/test_crew_faults.py)
SERVERS = tests/autogen/record/test_servers.py

test-recording:
	@.ci/environment main
	.venv/bin/python -m pytest tests $(addprefix --ignore=, $(DEBUGGER) $(AUTOGEN) $(CREWAI) tests/langgraph tests/temporal tests/playwright) $(ARGS)

test-debugger:
	@.ci/environment main
	.venv/bin/python -m pytest $(DEBUGGER) $(ARGS)

test-langgraph:
	@.ci/environment main
	.venv/bin/python -m pytest tests/langgraph --ignore=$(OUTSIDE) $(ARGS)

test-temporal:
	@.ci/environment main
	.venv/bin/python -m pytest tests/temporal --ignore=$(AGENTS) $(ARGS)

test-playwright:
	@.ci/environment main
	@tests=$$(.ci/browser .venv tests/playwright) || exit 1; \
		[ -z "$$tests" ] || .venv/bin/python -m pytest $$tests $(ARGS)

# Playwright's client as it was before it was written anew: what goes through it. The rest speaks with the browser itself.
test-playwright164:
	@.ci/environment playwright164
	@tests=$$(.ci/browser .venv-playwright164 $(addprefix tests/playwright/, actions wire)) || exit 1; \
		[ -z "$$tests" ] || .venv-playwright164/bin/python -m pytest $$tests $(ARGS)

test-agents:
	@.ci/environment agents
	.venv-agents/bin/python -m pytest $(AGENTS) $(ARGS)

test-autogen:
	@.ci/environment autogen
	.venv-autogen/bin/python -m pytest $(AUTOGEN) tests/adapter/test_late.py $(ARGS)

# What an older version of AutoGen may do otherwise. Its client of MCP's servers hangs with the MCP that there is now.
test-autogen070:
	@.ci/environment autogen070
	.venv-autogen070/bin/python -m pytest $(addprefix tests/autogen/, record states) --ignore=$(SERVERS) $(ARGS)

# One for both, which may run side by side.
environment-crewai:
	@.ci/environment crewai

test-crewai: environment-crewai
	.venv-crewai/bin/python -m pytest $(CREWAI) $(addprefix --ignore=, $(CREWAI_COMMANDS)) tests/adapter/test_late.py $(ARGS)

test-crewai-commands: environment-crewai
	.venv-crewai/bin/python -m pytest $(CREWAI_COMMANDS) $(ARGS)

# What an older version of CrewAI may do otherwise: it tells more of hooks, and keeps what runs agents elsewhere.
test-crewai-oldest:
	@.ci/environment crewai-oldest
	.venv-crewai-oldest/bin/python -m pytest $(addprefix tests/crewai/, calls/test_servers.py record/test_fitting.py \
		record/test_lanes.py record/test_turns.py replay/test_differences.py replay/test_given.py replay/test_kept.py \
		replay/test_order.py) $(ARGS)

test-mcp:
	@.ci/environment mcp
	.venv-mcp/bin/python -m pytest $(OUTSIDE) $(ARGS)

# What another version of a dependency may do otherwise, or an older Python, whose own modules the taps and lanes hook
# into. `tests/test_versions.py` says if a test is missing.
VERSIONED = $(addprefix tests/, cli/test_quick.py cli/test_starts.py log/test_carried.py log/test_native.py log/test_pack.py \
	log/test_reader.py log/test_store.py session taps/http taps/test_clock.py taps/test_collector.py \
	taps/test_collector_leftovers.py taps/test_entropy.py taps/test_forked.py taps/test_held.py taps/test_imports.py \
	testing)
# What is the same work again with what those have tested: with an old version only in `make stress`.
AGAIN = $(addprefix tests/, langgraph/fork log taps/environ taps/files taps/guard taps/host taps/processes \
	temporal/fork temporal/history temporal/streams)

test-oldest:
	@.ci/environment oldest
	@browsers=$$(.ci/browser .venv-oldest tests/playwright/wire) || exit 1; \
	.venv-oldest/bin/python -m pytest $(VERSIONED) $(addprefix tests/langgraph/, replay saver session) \
		$(addprefix tests/temporal/, record replay server/test_kitchen_sink.py) \
		$$browsers $(ARGS)

# Nothing but the SDKs of models is another one here, and what they ask with.
SDKS = $(addprefix tests/, taps/http/test_aiohttp.py taps/http/test_sdks.py testing)

test-openai2:
	@.ci/environment openai2
	.venv-openai2/bin/python -m pytest $(SDKS) $(ARGS)

check:
	@.ci/environment main
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

docs:
	@.ci/environment main autogen
	.venv/bin/python docs/table.py $(ARGS)
	[ -n "$(ARGS)" ] || .venv-autogen/bin/python docs/table.py autogen ag2

bench:
	@.ci/environment main peer autogen
	@.ci/browser .venv
	.venv/bin/python bench/compare.py --write $(ARGS)
	.venv/bin/python bench/savers.py --write $(ARGS)
	.venv/bin/python bench/temporal.py --write $(ARGS)
	.venv/bin/python bench/browsers.py --write $(ARGS)
	.venv-autogen/bin/python bench/autogen.py --write $(ARGS)

# A run that was cut off goes on where it was; what it found is in build/planted.
bench-planted:
	@.ci/environment main autogen crewai peer
	@.ci/browser .venv
	.venv/bin/python -m bench.planted run --agent plain --steps 8 16 52 --trials 50 --search budget own $(ARGS)
	.venv/bin/python -m bench.planted run --agent plain $(ARGS)
	.venv/bin/python -m bench.planted run --agent plain --steps 8 16 --drawn --search budget own $(ARGS)
	.venv/bin/python -m bench.planted run --agent plain --steps 8 16 --rescue 0 0.5 --breaks 0.2 --trials 50 $(ARGS)
	.venv/bin/python -m bench.planted run --agent plain-quoting $(ARGS)
	.venv/bin/python -m bench.planted run --agent langgraph $(ARGS)
	.venv/bin/python -m bench.planted run --agent temporal $(ARGS)
	.venv/bin/python -m bench.planted run --agent playwright $(ARGS)
	.venv/bin/python -m bench.planted run --agent lockstepd $(ARGS)
	.venv/bin/python -m bench.planted run --agent plain --steps 8 16 --rescue 0.5 --search once --trials 20 $(ARGS)
	.venv-autogen/bin/python -m bench.planted run --agent autogen $(ARGS)
	.venv-crewai/bin/python -m bench.planted run --agent crewai $(ARGS)
	.venv/bin/python -m bench.planted table --write

stress:
	@.ci/environment main autogen oldest
	.venv-oldest/bin/python -m pytest $(AGAIN)
	.venv/bin/python bench/stress.py --n 300 --kind asyncio --kind threads --kind mixed $(ARGS)
	.venv-autogen/bin/python bench/crowds.py --n 100

# Resolves the pins anew; to be followed by `make test`.
constraints:
	@.ci/environment main
	.ci/constraints

clean:
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache dist build
	find core tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} +
