"""The steps that people run by name."""

from typing import Literal, get_args

# In this order; each step is a job of its own.
Step = Literal["documents", "doctags", "admission", "chunks", "embeddings"]
STEPS: tuple[Step, ...] = get_args(Step)
