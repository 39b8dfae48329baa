"""ONNX Runtime as embedders use it."""

import os
from pathlib import Path
from typing import Any

import numpy as np


def cores() -> int:
    """What this process may use: its affinity, or fewer if OMP_NUM_THREADS says so, as Ray does."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(own, int(asked)) if asked.isdecimal() and int(asked) > 0 else own


def open_session(file: Path, threads: int) -> Any:
    """A session on the CPU that several threads may call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Arenas keep what the longest batch took, for each shape anew.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(
        str(file),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # the export leaves it out as well, and says why
    )


def infer(session: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Vectors of all tokens (texts, tokens, width)."""
    return np.asarray(session.run(None, {"input_ids": ids, "attention_mask": mask})[0])
