"""One file for each capability: `check(stage)` is tried in every mode, `across(stages)` once with all of them."""
