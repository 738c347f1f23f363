"""The models of the app: each is loaded once, and a few are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.adapters.torch_model import TorchAdapter

_MOST = 4  # models in memory; the one that was not used for longest is let go


@dataclass(frozen=True, eq=False)
class Served:
    """A model that several people may ask for, and the lock that lets one of them use it."""

    adapter: TorchAdapter
    lock: Lock = field(default_factory=Lock)


class Shelf:
    """Models by name. `others` says whether names that are not listed may be asked for.

    Whoever can name a folder or a repository makes this machine read it, so only a person who
    sits at the machine may.
    """

    def __init__(
        self, names: Sequence[str], load: Callable[[str], TorchAdapter], *, others: bool
    ) -> None:
        self.names = tuple(names)
        self.others = others
        self._load = load
        self._kept: OrderedDict[str, Served] = OrderedDict()
        self._lock = Lock()  # one model is loaded at a time

    def get(self, name: str | None) -> Served:
        """The model of this name, loaded and examined."""
        wanted = (name or "").strip()
        if not wanted:
            raise ArgumentError(
                explain_error(
                    "no model is chosen",
                    got="an empty name",
                    expected="one of the list" + " or another name" * self.others,
                    instead=self.names[0],
                )
            )
        if wanted not in self.names and not self.others:
            raise ArgumentError(
                unknown_name("model of this app:", wanted, self.names, write="pellucid app -m {}")
            )
        with self._lock:
            if wanted not in self._kept:
                adapter = self._load(wanted)
                _ = adapter.offers  # examined once, here, so that no one is kept waiting later
                self._kept[wanted] = Served(adapter)
            self._kept.move_to_end(wanted)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
            return self._kept[wanted]
