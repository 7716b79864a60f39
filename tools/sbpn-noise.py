#!/usr/bin/env python3
"""How far SBPN's own values of one thing are apart.

Its ring and its SBPN2 with the ring are one algorithm (sbpn-ring says why), measured at the same
60 points. Prints, for parts of the link rates, the standard deviation of a single value, and how far
95 % of two values are apart at most: one of the source's and one of ours, which come from as many
runs.
"""

import csv
import math
from pathlib import Path

PUBLISHED = Path(__file__).parent.parent / "crates/lab/reference/published/sbpn-t5.2-t7.5-congestion.csv"
PARTS = [(100, 300), (400, 900), (1000, 2000)]
METRICS = {"audio_loss_pct": "audio loss", "i_e": "I_e", "audio_delay_ms": "audio delay", "i_d": "I_d", "mos": "MOS"}


def main():
    with PUBLISHED.open(newline="") as file:
        rows = {(r["variant"], r["rtt_ms"], r["queue"], int(r["link_kbps"])): r for r in csv.DictReader(file)}
    for column, metric in METRICS.items():
        for least, most in PARTS:
            apart = [
                float(row[column]) - float(rows[("sbpn2-ring", *point)][column])
                for (variant, *point), row in rows.items()
                if variant == "ring" and least <= point[-1] <= most
            ]
            # The variance of a difference is twice that of a value.
            deviation = math.sqrt(sum(it * it for it in apart) / len(apart) / 2)
            part = f"{metric:12} {least:5} to {most:4} kbit/s: {len(apart):2} pairs"
            print(f"{part}, deviation {deviation:.2f}, two {1.96 * math.sqrt(2) * deviation:.2f} apart")


if __name__ == "__main__":
    main()
