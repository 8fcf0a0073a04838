#!/usr/bin/env bash
# Shoots FRAMES noisy frames of a moving disc, filters each and writes how much closer to the truth it came.
set -euo pipefail

mkdir -p frames raw
echo "frame,error_before,error_after" > quality.csv
for frame in $(seq -w 1 "$FRAMES"); do
  awk -v frame="$frame" -f shoot.awk > "raw/$frame.pgm"
  awk -v frame="$frame" -v clean="frames/$frame.pgm" -f median.awk "raw/$frame.pgm" >> quality.csv
  echo "frame $frame/$FRAMES  error $(tail -n 1 quality.csv | cut -d, -f2) -> $(tail -n 1 quality.csv | cut -d, -f3)"
  sleep "$PACE"
done
awk -F, 'NR > 1 { before += $2; after += $3 } END {
  printf "mean error %.2f -> %.2f\n", before / (NR - 1), after / (NR - 1); exit !(after < before) }' quality.csv
