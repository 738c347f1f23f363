"""The tab of walks: inside a class, out of it or to another, with pauses, and what it saw."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid._errors import ArgumentError, explain_error
from pellucid._trajectory import Trajectory
from pellucid.adapters.base import Adapter
from pellucid.app.explain import classes
from pellucid.app.picker import picker
from pellucid.app.picking import Chosen
from pellucid.app.pieces import framed, note
from pellucid.app.session import Session, Stopped, Walk, alone
from pellucid.explorer.explore import Halt, explore
from pellucid.viz import page
from pellucid.viz.markup import Markup, join

if TYPE_CHECKING:
    from pellucid.app.desk import Desk, Follower

_LEAST, _MOST = 1, 2000  # steps
_POINTS = 50  # that are kept of a walk, about
SPACES = {"text": ("embedding", "word"), "image": ("pixels", "embedding")}  # that can be decoded

Tell = Callable[[int, int], None]


def options_of(
    goal: str | int, steps: int, space: str, feasible: bool, chosen: Chosen
) -> dict[str, Any]:
    """What is chosen on the page as arguments of `explore`."""
    if not _LEAST <= steps <= _MOST:
        raise ArgumentError(
            explain_error(
                "a walk of so many steps is not for the app",
                got=f"{steps} steps",
                expected=f"{_LEAST} to {_MOST}",
                instead="pellucid.explore(model, text, steps=...)",
            )
        )
    return {
        "goal": goal,
        "steps": int(steps),
        "space": space,
        "within": "bounds" if feasible and space != "pixels" else None,  # which has bounds anyway
        "tokens": sorted(chosen) or None,
        "save_every": max(1, int(steps) // _POINTS),
    }


def begun(model: str, raw: Any, options: dict[str, Any], folder: Path) -> Walk:
    """A walk that has not taken a step."""
    return Walk(model, raw, options, folder / f"walk-{uuid.uuid4().hex}")


def walked(adapter: Adapter, session: Session, walk: Walk, tell: Tell) -> Trajectory:
    """The walk from its start, or from where it was paused, to its end or to the next pause.

    Stopped, it ends as Stopped and cannot be gone on with.
    """
    every = walk.options["save_every"]

    def told(done: int, total: int) -> None:
        tell(done, total)
        if session.stop.is_set() or (session.pause.is_set() and done % every == 0):
            raise Halt

    if session.walk is not walk:
        session.forget_walk()
        session.walk = walk
    try:
        found: Trajectory = explore(
            adapter, walk.raw, **walk.options, checkpoint=walk.checkpoint, progress=told
        )
    except BaseException:
        session.forget_walk()
        raise
    if session.stop.is_set():
        session.forget_walk()
        raise Stopped
    if not walk.checkpoint.exists() and session.walk is walk:  # it arrived
        session.walk = None
    return found


def shown(found: Trajectory, *, paused: bool) -> Markup:
    """The report of a walk: a slider over its points, what they look like, what the model says."""
    where = note(f"Paused after {found.steps} steps; Go on continues from here.")
    return join(where if paused else Markup(), framed(page(found), "walk"))


def tab(desk: Desk) -> list[Follower]:
    """Lay the tab out; what of it follows the choice of the model."""
    gr = desk.gr
    with gr.Row():
        goal = gr.Dropdown(label="Goal", scale=2, min_width=220, elem_id="goal")
        space = gr.Dropdown(label="Walk in the space of", scale=1, min_width=160, elem_id="space")
        steps = gr.Slider(10, _MOST, 100, step=10, label="Steps", scale=2, elem_id="steps")
        feasible = gr.Checkbox(True, label="only what inputs can be", scale=1, min_width=180)
    chosen = picker(desk, "Choose what moves (nothing chosen: everything)")
    with gr.Row():
        start = gr.Button("Walk", variant="primary", elem_id="walk")
        pause = gr.Button("Pause", min_width=80, scale=0, elem_id="pause")
        resume = gr.Button("Go on", min_width=96, scale=0, elem_id="resume")
        stop = gr.Button("Stop", min_width=80, scale=0)
    result = gr.HTML(elem_id="walked")

    def run(given: Any, *rest: Any) -> Iterator[Markup]:
        *choices, progress = rest
        walk = begun(given.model, given.raw, options_of(*choices), desk.folder)
        yield from go(given, walk, progress)

    def go_on(given: Any, progress: Any) -> Iterator[Markup]:
        if given.session.walk is None:
            yield note("There is no walk to go on with.")
        else:
            yield from go(given, given.session.walk, progress)

    def go(given: Any, walk: Walk, progress: Any) -> Iterator[Markup]:
        def tell(done: int, total: int) -> None:
            progress((done, total), desc="walking", unit="steps")

        given.session.pause.clear()
        with alone(desk.shelf.get(walk.model), given.session.stop) as adapter:
            found = walked(adapter, given.session, walk, tell)
            made = shown(found, paused=given.session.walk is not None)
        yield made

    desk.runs(start, run, [goal, steps, space, feasible, chosen], result)
    desk.runs(resume, go_on, [], result)
    desk.stops(stop)
    desk.pauses(pause)
    return [
        (goal, lambda a: {"choices": goals(a), "value": "stay"}),
        (space, lambda a: {"choices": list(SPACES[a.kind]), "value": SPACES[a.kind][0]}),
        (feasible, lambda a: {"visible": a.kind == "text"}),
    ]


def goals(adapter: Adapter) -> list[tuple[str, str | int]]:
    """Where a walk can go, in words."""
    return [
        ("stay: what the model cannot tell apart", "stay"),
        ("leave the class", "leave"),
        *((f"walk to {name}", number) for name, number in classes(adapter)),
    ]
