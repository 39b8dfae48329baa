"""Where a forced run puts what it would overwrite."""

import hashlib
import json
import shutil
from pathlib import Path

from ingest_assets.model.items import WorkItem


class Quarantine:
    """Moves an item's existing outputs into a numbered folder of its own; never overwrites earlier ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, item: WorkItem) -> None:
        """Move what exists; an item without outputs leaves no trace. `OSError` when it cannot be moved."""
        existing = [path for path in map(Path, item.output_paths) if path.exists()]
        if not existing:
            return
        room = self._new_room(item.item_id)
        origin = {"item_id": item.item_id, "outputs": [str(path) for path in existing]}
        (room / "origin.json").write_text(json.dumps(origin, indent=2), encoding="utf-8")
        for number, path in enumerate(existing):
            shutil.move(path, room / f"{number:02d}-{path.name}")

    def _new_room(self, item_id: str) -> Path:
        """`mkdir` is atomic, so two runs never share a room."""
        home = self._folder / hashlib.sha256(item_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        home.mkdir(parents=True, exist_ok=True)
        number = 1 + sum(1 for _ in home.iterdir())
        while True:
            room = home / f"{number:04d}"
            try:
                room.mkdir()
            except FileExistsError:
                number += 1
            else:
                return room
