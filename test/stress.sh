#!/bin/sh
# Runs all tests ten times, or as often as the argument says, and prints how often which test failed.
runs=${1:-10}
output=$(mktemp -d)
for run in $(seq "$runs"); do
  started=$(date +%s)
  npm test >"$output/$run" 2>&1
  echo "run $run of $runs: status $?, $(($(date +%s) - started)) s, output in $output/$run"
done
# After this line, the reporter lists the failed tests once more.
for each in "$output"/*; do sed -n '/^✖ failing tests:/,$p' "$each"; done | grep '^ *✖ [^f]' | sed 's/ ([0-9.]*ms)//' | sort | uniq -c
