"""What a run that goes on is made of: held to its form before it is believed, wherever it was kept."""

from torch import Tensor

from fednb.parameters import fits

Memories = dict[str, dict[str, Tensor]]
FORM = {
    "rounds": int,
    "prepared": dict[str, dict[str, int]],
    "images": dict[str, int],
    "model": dict[str, Tensor],
    "server": Memories,
    "clients": dict[str, Memories],
    "_tested": Memories,
    "away": dict[str, dict[int, str]],
    "after": dict[str, int],
    "lost": dict[str, list[int]],
    "shared": dict[str, Tensor],
    "forms": dict[str, dict[str, list[str]]],
    "wire": dict[str, dict[str, int]],
}


def require_form(state) -> None:
    """ValueError, naming the entry, where one cannot be a run's."""
    if not isinstance(state, dict):
        raise ValueError(f"its run is {type(state).__name__}; expected names and values")
    for name, value in state.items():
        if name in FORM and not fits(value, FORM[name]):
            raise ValueError(f"{name} of its run has not the form that a run gave it")
