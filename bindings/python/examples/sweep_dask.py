"""A scenario over many seeds, spread over workers: here two processes of this machine, elsewhere as many
machines as there are.

pip install 'braidcast[sweep]', then: python sweep_dask.py [SCENARIO [RUNS]]

Each task is one seed. A run depends on its seed alone, so it does not matter who does which, and the table
is the same each time. With machines of your own, give Client the address of your Dask scheduler in place of
LocalCluster; each worker needs this wheel.
"""

import os
import sys

# Each worker has one core; before the package is loaded there.
os.environ["RAYON_NUM_THREADS"] = "1"

import braidcast
from dask.distributed import Client, LocalCluster


def one(scenario, seed, duration):
    """One run at each point."""
    return braidcast.run(scenario, runs=1, seed=seed, duration=duration), os.getpid()


def main(scenario="cmt-loss", runs="4", duration=5.0):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        tasks = [client.submit(one, scenario, seed, duration, pure=False) for seed in range(1, int(runs) + 1)]
        results = client.gather(tasks)
    workers = {pid for _, pid in results}
    print(f"{len(results)} runs by {len(workers)} workers")
    table = braidcast.concat(result for result, _ in results)
    print(table.head(12).to_string())
    return table


if __name__ == "__main__":
    main(*sys.argv[1:])
