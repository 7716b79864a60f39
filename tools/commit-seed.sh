#!/usr/bin/env bash
# Prints a seed that differs from commit to commit: the first 28 bits of HEAD's id; 1 outside a
# repository.
set -euo pipefail
cd "$(dirname "$0")/.."
id=$(git rev-parse HEAD 2>/dev/null || echo 0000000)
echo $((16#${id:0:7} + 1))
