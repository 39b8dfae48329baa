"""A home with documents that really fail, and the site that two of them come from."""

from dataclasses import dataclass

from ingest_tests.conftest import Command
from ingest_tests.intake.fetch.site import Site, Visit

PAGES = [[(72, 700 - 40 * n, 12, f"Page {n} is about bees, trees and their keepers.")] for n in range(3)]
BACK = b"<html><body><p>The page is back and says again what it said before it went.</p></body></html>"


class Web:
    """Two missing pages; those in `up` exist after all."""

    def __init__(self, site: Site) -> None:
        self.site, self.up = site, set[str]()
        self.urls = {name: site.page(f"/{name}", self._answer) for name in ("one.html", "two.html")}

    def _answer(self, visit: Visit) -> None:
        if visit.path.strip("/") in self.up:
            visit.reply(200, BACK, content_type="text/html")
        else:
            visit.reply(404)


@dataclass(frozen=True)
class Failed(Command):
    """The command on a home with failures."""

    web: Web

    def codes(self, *arguments: object) -> dict[str, str]:
        """The codes that `list` prints, by document."""
        return {f["doc_id"]: f["code"] for f in self.json("failures", "list", *arguments)["failures"]}

    def attempts(self) -> dict[str, int]:
        """The attempts that `list` prints, by document."""
        return {f["doc_id"]: f["attempts"] for f in self.json("failures", "list")["failures"]}

    def settings(self, text: str) -> None:
        (self.home / "ingest.toml").write_text(text)
