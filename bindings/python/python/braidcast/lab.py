"""The lab: experiments on simulated networks, over seeds, on all cores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional

from . import _native

if TYPE_CHECKING:
    import pandas


class Results:
    """What a scenario gave: a row for each metric, variant and point of the sweep, with the value of each run.

    rows      a list of dicts: experiment, variant, params, metric, unit, mean, ci95, n, published, ns2, source, values
    series    curves of the first runs: name, variant, params, x, y, points
    verdicts  what became of the claims of the source
    """

    def __init__(self, document: Dict[str, Any]) -> None:
        self.document = document
        self.scenario: str = document["scenario"]
        self.seed: int = document["seed"]
        self.rows: List[Dict[str, Any]] = document["rows"]
        self.series: List[Dict[str, Any]] = document["series"]
        self.verdicts: List[Any] = document["verdicts"]

    def columns(self) -> Dict[str, List[Any]]:
        """The rows as columns, for whatever makes tables: a dict of lists, with a column for each parameter
        of the sweep."""
        params = sorted({name for row in self.rows for name in row["params"]})
        names = ["experiment", "variant", "metric", "unit", "mean", "ci95", "n", "published", "ns2", "source"]
        table = {name: [row.get(name) for row in self.rows] for name in names}
        table.update({name: [row["params"].get(name) for row in self.rows] for name in params if name not in table})
        return table

    def runs(self) -> Dict[str, List[Any]]:
        """The value of each run as columns: as columns(), with seed and value in place of mean and ci95."""
        params = sorted({name for row in self.rows for name in row["params"]})
        names = ["experiment", "variant", "metric", "unit"]
        table: Dict[str, List[Any]] = {name: [] for name in [*names, *params, "seed", "value"]}
        for row in self.rows:
            for place, value in enumerate(row["values"]):
                for name in names:
                    table[name].append(row[name])
                for name in params:
                    table[name].append(row["params"].get(name))
                table["seed"].append(self.seed + place)
                table["value"].append(value)
        return table

    def to_pandas(self, runs: bool = False) -> pandas.DataFrame:
        """A pandas DataFrame of columns(), or of runs()."""
        import pandas

        return pandas.DataFrame(self.runs() if runs else self.columns())

    def series_to_pandas(self) -> pandas.DataFrame:
        """The curves as one DataFrame: a line for each point, with the axes' labels as columns x_label and y_label."""
        import pandas

        lines = [
            {"name": it["name"], "variant": it["variant"], **it["params"], "x": x, "y": y, "x_label": it["x"], "y_label": it["y"]}
            for it in self.series
            for x, y in it["points"]
        ]
        return pandas.DataFrame(lines)

    def __repr__(self) -> str:
        return f"<braidcast.Results of {self.scenario}: {len(self.rows)} rows, {len(self.series)} series>"


def scenarios() -> Dict[str, str]:
    """The scenarios inside: a dict of name and title. braidcast's manual says what each shows and how to write one."""
    return dict(_native.scenario_names())


def run(
    name: object = "scenario.toml",
    *,
    text: Optional[str] = None,
    runs: Optional[int] = None,
    seed: int = 1,
    duration: Optional[float] = None,
    variant: Optional[str] = None,
    params: Optional[Mapping[object, object]] = None,
    progress: Optional[Callable[[int, int], object]] = None,
) -> Results:
    """Runs a scenario in the simulator, on all cores (RAYON_NUM_THREADS sets how many), and returns its Results.

    name      one of scenarios(), or a TOML file; with text, only what messages call it
    text      the TOML itself
    runs      runs at each point, with the seeds seed, seed + 1, …; None: as the scenario says
    duration  seconds that each run measures; None: as the scenario says
    variant   only this one
    params    only points where these parameters have these values
    progress  called with the number of runs that are done and of all, some ten times a second

    The same seed gives the same values, wherever it runs. Raises Error in words, and KeyboardInterrupt after Ctrl-C.
    """
    wanted = None if params is None else {str(key): str(value) for key, value in params.items()}
    return Results(json.loads(_native.run_scenario(str(name), text, runs, seed, duration, variant, wanted, progress)))


def concat(parts: Iterable[Results]) -> pandas.DataFrame:
    """One table of the runs of several Results of one scenario with different seeds, for example from
    other machines: a DataFrame with mean, ci95 (half of the 95 % interval, Student's t; None of a single
    run) and n for each metric, variant and point."""
    import pandas

    frame = pandas.concat([part.to_pandas(runs=True) for part in parts], ignore_index=True).drop_duplicates()
    by = [name for name in frame.columns if name not in ("seed", "value")]
    values = frame.groupby(by, dropna=False, sort=False)["value"].agg(list).reset_index()
    means = [_native.mean_ci95(runs) for runs in values["value"]]
    values["mean"], values["ci95"] = [mean for mean, _ in means], [ci95 for _, ci95 in means]
    values["n"] = [len(runs) for runs in values.pop("value")]
    return values
