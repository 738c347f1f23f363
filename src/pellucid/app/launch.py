"""The server of the app: on this machine, without a network, and gone without a trace."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from threading import Event
from typing import Any

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.app.layout import build
from pellucid.app.models import Shelf
from pellucid.models import bundled_names

LOOPBACK = ("127.0.0.1", "localhost", "::1")

_LARGEST = "20mb"  # of a file that is dropped
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")
_ENVIRONMENT = {  # which gradio reads while it is imported and while it runs
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_SHARE": "False",
    "GRADIO_NUM_PORTS": "1",
}


def launch(
    load: Callable[[str], TorchAdapter],
    *,
    models: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 7860,
    browser: bool = False,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the app until it is interrupted; `ready` is told its address.

    `models` are offered besides the bundled ones. Others may be named by hand only where the app is
    bound to this machine alone.
    """
    integer("port", port, 1, 7860)
    known = [*models, *(f"pellucid/{name}" for name in bundled_names())]
    shelf = Shelf(list(dict.fromkeys(known)), load, others=host in LOOPBACK)
    with tempfile.TemporaryDirectory(prefix="pellucid-app-") as folder, _environment(folder):
        gr = _gradio()
        for name in models:
            shelf.get(name)  # which says at once what is wrong with it
        demo = build(gr, shelf, Path(folder))
        try:
            _serve(gr, demo, host, port, browser)
            ready(f"http://{host}:{port}")
            Event().wait()
        except KeyboardInterrupt:
            pass  # how it ends
        finally:
            demo.close(verbose=False)


def _serve(gr: Any, demo: Any, host: str, port: int, browser: bool) -> None:
    """Start to serve; a port that is taken is an error of ours."""
    style = "\n".join(
        files(package).joinpath(name).read_text(encoding="utf-8")
        for package, name in (("pellucid.viz", "page.css"), ("pellucid.app", "app.css"))
    )
    script = files("pellucid.app").joinpath("app.js").read_text(encoding="utf-8")
    try:
        demo.launch(
            server_name=host,
            server_port=port,
            inbrowser=browser,
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            strict_cors=True,  # no other page in the person's browser can use the app
            show_error=False,
            max_file_size=_LARGEST,
            enable_monitoring=False,
            mcp_server=False,
            ssr_mode=False,
            pwa=False,
            footer_links=[],
            state_session_capacity=200,
            theme=gr.themes.Base(font=_FONTS, font_mono=_MONO, primary_hue="blue"),
            css=style,
            head=f"<script>{script}</script>",
            app_kwargs={"middleware": _guards(host)},
        )
    except OSError as error:
        raise ArgumentError(
            explain_error(
                "the app cannot be served there",
                got=f"--host {host} --port {port} ({str(error).splitlines()[0]})",
                expected="an address of this machine and a port that is free",
                instead=f"pellucid app --port {port + 1}",
            )
        ) from None


def _guards(host: str) -> list[Any]:
    """What stands before the server of one machine: a name that merely leads here is no reason.

    Otherwise another page could reach the app by a name of its own that it lets point to us.
    """
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    if host not in LOOPBACK:
        return []
    return [Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])]


def _gradio() -> Any:
    try:
        import gradio
    except ImportError:
        raise ArgumentError(
            explain_error(
                "the app needs gradio",
                got="no installed gradio",
                expected="the extra that serves pages",
                instead="pip install 'pellucid[app]'",
            )
        ) from None
    return gradio


@contextmanager
def _environment(folder: str) -> Iterator[None]:
    """Inside the block, gradio asks nobody for versions and keeps what is dropped in the folder."""
    wanted = _ENVIRONMENT | {"GRADIO_TEMP_DIR": str(Path(folder) / "files")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
