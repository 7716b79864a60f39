#!/usr/bin/env python3
"""Prints rates.txt from the data set's files: compact.py FILE.txt... > rates.txt (README.md says what is in both)."""
import os
import sys

for path in sys.argv[1:] or sys.exit(__doc__):
    steps = [tuple(map(float, line.split())) for line in open(path) if line.strip()]
    rates = []
    for half_second in range(2 * int(steps[-1][0]) + 2):
        mbit = next(mbit for at, mbit in reversed(steps) if at <= half_second / 2)
        rates.append(str(round(mbit * 100)))
    print(os.path.splitext(os.path.basename(path))[0], 'a', ','.join(rates), '-')
