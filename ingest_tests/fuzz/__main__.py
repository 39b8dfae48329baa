"""`python -m ingest_tests.fuzz --files 6000 --seed 7`: a longer run with a report."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from ingest_tests.fuzz.files import write_files
from ingest_tests.fuzz.observing import Observed, Surroundings, observe


def main() -> int:
    """Create the files, run, report; return 1 if a file ended without a known code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=60.0)
    parser.add_argument("--max-worker-mebibytes", type=int, default=3072)
    parser.add_argument("--folder", type=Path, help="kept; default: a temporary one, removed")
    args = parser.parse_args()
    if args.folder:
        return _run(args, args.folder)
    with tempfile.TemporaryDirectory() as folder:
        return _run(args, Path(folder))


def _run(args: argparse.Namespace, folder: Path) -> int:
    around = Surroundings(folder)
    write_files(around.documents, args.files, args.seed)
    observed = observe(around, args.timeout_s, args.max_worker_mebibytes)
    sys.stdout.write("\n".join(_lines(observed)) + "\n")
    return 1 if observed.exit_code not in (0, 1) or "E_UNKNOWN" in observed.counts() else 0


def _lines(observed: Observed) -> list[str]:
    by_format = Counter(
        (name.split("-")[1].split(".")[0], ending) for name, ending in observed.endings.items()
    )
    slowest = sorted(observed.durations.items(), key=lambda each: -each[1])[:10]
    return [
        f"exit code {observed.exit_code}, {len(observed.endings)} files, {observed.seconds:.0f} s, "
        f"largest worker {observed.peak_worker_mebibytes:.0f} MiB",
        *(f"{count:6} {ending}" for ending, count in observed.counts().items()),
        *(f"{count:6} {kind:6} {ending}" for (kind, ending), count in sorted(by_format.items())),
        *(f"{took:6.1f} s {name} {observed.endings[name]}" for name, took in slowest),
        *(
            f"{observed.endings[name]}: {name}: {message}"
            for name, message in sorted(observed.messages.items())
            if observed.endings[name] in ("E_UNKNOWN", "E_TIMEOUT", "E_WORKER_DIED", "E_RESOURCE_MEMORY")
        ),
        *(f"written elsewhere: {name}" for name in observed.written_elsewhere),
        observed.errors[-2000:] if observed.exit_code != 1 else "",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
