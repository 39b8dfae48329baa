"""How many failures a stage may have before going on is a waste, and the words for it."""

from ingest_assets.model.options import StageOptions

MIN_FINISHED_FOR_SHARE = 20


def reason_to_stop(options: StageOptions, succeeded: int, failed: int) -> str | None:
    """Plain words naming the numbers, or nothing."""
    if failed == 0:
        return None
    finished = succeeded + failed
    if options.cancel_on_first_failure:
        return f"stopped at the first failure, as asked, after {finished} finished items"
    if options.error_budget is not None and failed > options.error_budget:
        budget = options.error_budget
        return f"stopped after {failed} of {finished} finished items failed: the error budget is {budget}"
    share = options.max_failed_share
    if share is not None and finished >= MIN_FINISHED_FOR_SHARE and failed / finished > share:
        failing = f"{failed} of {finished} finished items failed ({failed / finished:.0%})"
        return f"stopped because {failing}: at most {share:.0%} may"
    return None


def too_many_abandoned(abandoned: int, workers: int, timeout_s: float) -> str | None:
    """Each abandoned thread holds memory and perhaps a lock; past so many, the process cannot be trusted."""
    limit = 2 * workers + 8
    if abandoned <= limit:
        return None
    stuck = f"{abandoned} threads are stuck in items past their limit of {timeout_s:g} s"
    return f"stopped because {stuck}: at most {limit} may be"
