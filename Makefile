# A thin wrapper: `python demo/run.py CHORE` does the same where there is no make.
PYTHON ?= python3
RUN = $(PYTHON) demo/run.py

.PHONY: help demo test soak generate regen site tool check venv clean

help:
	@$(RUN) help

# LOGS="/var/lib/kafka" reads other logs than the samples.
demo:
	@$(RUN) demo $(LOGS)

# PARTS="laws mutants" runs these parts alone.
soak:
	@TOOLS=$(CURDIR)/.soak/tools bash .ci/tools $(RUN) soak $(PARTS)

# EXTRAS="arrow sql" adds what these extras need.
tool:
	@$(RUN) tool $(EXTRAS)

test generate regen site check venv clean:
	@$(RUN) $@
