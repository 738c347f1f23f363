"""Write the pictures of pages anew, by running the pages: ``python docs/made/pictures.py``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from blocks import blocks_of, run_page

DOCS = Path(__file__).parent.parent

if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        if not any(".savefig(" in block.code for block in blocks_of(page)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            run_page(page, Path(folder))
            for picture in sorted(Path(folder).glob("*.png")):
                shutil.copy(picture, DOCS / "images" / picture.name)
