"""The page: the model and the input above, and the tabs that work on them below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pellucid._errors import PellucidError
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.app import compare, explain, explore, what_if
from pellucid.app.desk import LONGEST, Desk, Follower
from pellucid.app.models import Shelf
from pellucid.app.pieces import message, note
from pellucid.app.session import Session
from pellucid.models import sample_images, sample_texts
from pellucid.viz.markup import Markup

_PEOPLE = 4  # whose work runs at the same time; others wait
_WAITING = 32
_KEPT = 24 * 3600  # seconds that a session and its pictures live; closing the page ends them too


def build(gr: Any, shelf: Shelf, folder: Path) -> Any:
    """The page as gradio's Blocks; `folder` is for the files of walks that are paused."""
    with gr.Blocks(title="pellucid", analytics_enabled=False, delete_cache=(600, _KEPT)) as demo:
        session = gr.State(Session(), time_to_live=_KEPT, delete_callback=_left)
        gr.HTML("<h1>pellucid</h1><p>See what a Transformer sees.</p>", elem_id="head")
        with gr.Row():
            model = gr.Dropdown(
                list(shelf.names),
                value=shelf.names[0],
                label="Model",
                info=_models_info(shelf),
                allow_custom_value=shelf.others,
                scale=1,
                min_width=280,
                elem_id="model",
            )
            with gr.Column(scale=2, min_width=280):
                text, image, samples = _inputs(gr)
        status = gr.HTML(elem_id="status")
        desk = Desk(gr, demo, shelf, folder, session, model, text, image)
        followers: list[Follower] = []
        for title, tab in (
            ("Explain", explain.tab),
            ("Explore", explore.tab),
            ("Compare", compare.tab),
            ("What if", what_if.tab),
        ):
            with gr.Tab(title):
                followers += tab(desk)
        _follow(gr, desk, status, samples, followers)
    demo.queue(default_concurrency_limit=_PEOPLE, max_size=_WAITING, api_open=False)
    return demo


def _inputs(gr: Any) -> tuple[Any, Any, list[Any]]:
    """The text and the image, of which the model's kind is seen, with examples of both."""
    with gr.Column(visible=False) as texts:
        text = gr.Textbox(
            sample_texts()[3], label="Text", lines=3, max_length=LONGEST, elem_id="text"
        )
        gr.Examples(sample_texts()[:4], text, label="Examples", api_visibility="private")
    with gr.Column(visible=False) as images:
        image = gr.Image(
            str(sample_images()[3]),
            type="filepath",
            label="Image",
            sources=["upload", "clipboard"],
            height=260,
            buttons=[],
            elem_id="image",
        )
        # pellucid opens the file itself, with its own checks and errors; gradio has checked already
        # that it is one of those that were dropped here
        image.preprocess = lambda payload: None if payload is None else payload.path
        paths = [str(path) for path in sample_images()]
        gr.Examples(paths, image, label="Examples", api_visibility="private")
    return text, image, [texts, images]


def _follow(
    gr: Any, desk: Desk, status: Any, samples: list[Any], followers: list[Follower]
) -> None:
    """Whatever depends on the model changes with it."""
    outputs = [status, *samples, *(component for component, _ in followers)]

    def chosen(model: str) -> list[Any]:
        try:
            served = desk.shelf.get(model)
        except PellucidError as error:
            return [message(error), *([gr.skip()] * (len(outputs) - 1))]
        adapter = served.adapter
        reads = [gr.update(visible=adapter.kind == kind) for kind in ("text", "image")]
        updates = [gr.update(**change(adapter)) for _, change in followers]
        return [_described(adapter), *reads, *updates]

    for event in (desk.demo.load, desk.model.change):
        event(chosen, [desk.model], outputs, api_visibility="private", show_progress_on=status)


def _described(adapter: TorchAdapter) -> Markup:
    labels = f" into {len(adapter.labels)} classes" if adapter.labels else ""
    return note(f"{adapter.name}: {adapter.task} of {adapter.kind}s{labels}, on {adapter.device}")


def _models_info(shelf: Shelf) -> str:
    if shelf.others:
        return "one of these, a folder on this machine, or a name on the Hugging Face hub"
    return "those that this app was started with"


def _left(session: Session) -> None:
    if isinstance(session, Session):
        session.leave()
