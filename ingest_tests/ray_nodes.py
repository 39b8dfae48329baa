"""A Ray cluster of several nodes on this machine, for tests that lose one."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ray.cluster_utils import Cluster

from ingest_assets.backends import ray as ray_cluster


@contextlib.contextmanager
def two_worker_nodes() -> Iterator[tuple[Any, list[Any]]]:
    """A head without room for workers, and two nodes with one core each."""
    ray_cluster.disconnect()
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    made.wait_for_nodes()
    try:
        yield made, nodes
    finally:
        ray_cluster.disconnect()
        made.shutdown()
