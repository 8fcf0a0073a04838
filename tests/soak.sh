#!/usr/bin/env bash
# The soak: random lives of jobs, a random fault every half second, the auditor beside them (tests/soak.rs).
# Builds what it needs, prints the figures, and fails on any violation or process left over.
#   tests/soak.sh --minutes 20 [--seed N] [--binary target/release/overnight] [--clock]
# --clock also steps the wall clock of the machine: only where nobody else minds.
set -euo pipefail
minutes=1
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) minutes=$2; shift 2 ;;
    --seed) export SOAK_SEED=$2; shift 2 ;;
    --binary) OVERNIGHT_TEST_BINARY=$(realpath "$2"); export OVERNIGHT_TEST_BINARY; shift 2 ;;
    --clock) export OVERNIGHT_TEST_CLOCK_STEPS=1; shift ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
SOAK_SECONDS=$(awk -v minutes="$minutes" 'BEGIN { print int(minutes * 60) }')
export SOAK_SECONDS
exec cargo test --locked --quiet --test soak -- random_lives_and_random_faults_break_nothing
