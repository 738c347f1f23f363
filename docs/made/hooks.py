"""What MkDocs asks while it builds: the pages that are made from the code and from stored runs."""

from __future__ import annotations

from pathlib import Path

import choosing_page
import methods_pages
import metrics_pages
import reference_page
import stored
import tried
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pellucid.methods import METHODS
from pellucid.metrics import METRICS


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give every method, metric and stored page of results its place in the navigation."""
    found = stored.RESULTS.glob("*.md")
    more = {
        "Methods": [f"methods/{name}.md" for name in METHODS],
        "Metrics": [*(f"metrics/{name}.md" for name in METRICS), "metrics/walks.md"],
        "Results": [f"results/{path.name}" for path in sorted(found)],
    }
    for section in config.nav or []:
        for title, entries in section.items():
            if title in more:
                entries += more[title]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made."""
    made = methods_pages.pages(tried.shown) | metrics_pages.pages(tried.valued)
    made["reference.md"] = reference_page.page()
    root = Path(config.config_file_path).parent
    for name in ("CONTRIBUTING", "CHANGELOG"):
        made[f"{name.lower()}.md"] = (root / f"{name}.md").read_text(encoding="utf-8")
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the tables where the page on choosing marks them."""
    if page.file.src_uri == "choosing.md":
        for name, table in choosing_page.tables().items():
            markdown = markdown.replace(f"<!-- made: {name} -->", table)
    return markdown
