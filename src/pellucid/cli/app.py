"""`pellucid app`: the same in a browser, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

Models = Annotated[
    list[str],
    typer.Option("--model", "-m", help="A model to offer first; may be given several times."),
]
Host = Annotated[
    str, typer.Option("--host", help="The address to serve at; others than this machine may ask.")
]
Port = Annotated[int, typer.Option("--port", help="The port to serve at.")]
Browser = Annotated[bool, typer.Option("--browser", help="Open it in a browser.")]


def app(
    model: Models = [],  # noqa: B006  # typer copies it
    host: Host = "127.0.0.1",
    port: Port = 7860,
    browser: Browser = False,
) -> None:
    """Explain, walk and compare in a browser; nothing leaves this machine."""
    import signal

    from pellucid.app.launch import LOOPBACK, launch
    from pellucid.cli._common import load_model

    def ready(address: str) -> None:
        typer.echo(f"pellucid app: {address}  (Ctrl+C ends it)")
        if host not in LOOPBACK:
            typer.echo("others can reach it, so only the models of its list can be asked for")

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that its files go in either case
    launch(load_model, models=model, host=host, port=port, browser=browser, ready=ready)
