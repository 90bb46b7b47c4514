#!/bin/sh
# Runs test files, four at a time, with one PostgreSQL server. Lists the skipped tests at the end.
NODE_COMPILE_CACHE=$PWD/.cache exec node --test --test-concurrency=4 --test-timeout=240000 \
  --test-global-setup=test/support/postgres-for-all.ts \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=./test/support/skips.ts --test-reporter-destination=stdout \
  "$@"
