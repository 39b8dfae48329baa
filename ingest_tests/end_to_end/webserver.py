"""A running `ingest up` and the GraphQL queries of the tests."""

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from ingest_tests.conftest import Command, clean_environment

ASSETS = """{ assetNodes {
  assetKey { path } dependencyKeys { path } partitionKeys pools opVersion kinds description
  owners { ... on TeamAssetOwner { team } }
  assetChecksOrError { ... on AssetChecks { checks { name blocking } } }
  metadataEntries { label }
} }"""

RUN = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

LAUNCH = """mutation($job: String!, $batch: String!, $assets: [AssetKeyInput!]!) {
  launchRun(executionParams: {
    selector: { repositoryLocationName: "ingest_assets.definitions", repositoryName: "__repository__",
                jobName: $job, assetSelection: $assets },
    runConfigData: {}, mode: "default",
    executionMetadata: { tags: [{ key: "dagster/partition", value: $batch }] } }) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } } } }"""

TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""

TICKS = """{ sensorOrError(sensorSelector: { repositoryLocationName: "ingest_assets.definitions",
  repositoryName: "__repository__", sensorName: "watched_folders" }) {
  ... on Sensor { sensorState { ticks { status } } } } }"""

BACKFILL = """mutation($assets: [AssetKeyInput!]!, $batches: [String!]!) {
  launchPartitionBackfill(backfillParams: { assetSelection: $assets, partitionNames: $batches }) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""

BACKFILL_STATE = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status numPartitions } } }"""

MATERIALIZED = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetMaterializations { partition runId metadataEntries { label } } } } }"""

CHECKS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name
    executionForLatestMaterialization { status } } } } } } }"""


class Web:
    """One `ingest up` in a separate process."""

    def __init__(self, command: Command) -> None:
        self.port = _free_port()
        self.process = subprocess.Popen(
            command.line("up", "--port", self.port),
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, query: str, **variables: Any) -> Any:
        """Return the data of a GraphQL answer; an error fails the test."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            parsed = json.loads(answer.read())
        assert "errors" not in parsed, parsed["errors"]
        return parsed["data"]

    def wait_for(self, condition: Callable[[], Any], seconds: float = 180, every_s: float = 1.0) -> Any:
        """Repeat until the result is true; the server must be alive."""
        deadline = time.monotonic() + seconds
        while True:
            assert self.process.poll() is None, self.process.communicate()[0]
            try:
                if found := condition():
                    return found
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass  # not listening yet
            assert time.monotonic() < deadline, "what the test waits for did not happen"
            time.sleep(every_s)

    def launch(self, job: str, batch: str, assets: list[list[str]]) -> str:
        """Launch a run like the UI and wait for it; return its final status."""
        return self.final_status(self.start_run(job, batch, assets))

    def start_run(self, job: str, batch: str, assets: list[list[str]]) -> str:
        """Launch a run like the UI; return its id."""
        keys = [{"path": path} for path in assets]
        answer = self.ask(LAUNCH, job=job, batch=batch, assets=keys)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def terminate(self, run_id: str) -> None:
        """Terminate a run like the UI's button."""
        answer = self.ask(TERMINATE, id=run_id)["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def final_status(self, run_id: str) -> str:
        """Wait for a run to end; return its status."""
        final = {"SUCCESS", "FAILURE", "CANCELED"}
        return self.wait_for(lambda: (s := self.ask(RUN, id=run_id)["runOrError"]["status"]) in final and s)

    def stop(self) -> int:
        """Send Ctrl-C; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
