"""What a run that goes on is made of: held to its form before it is believed, wherever it was kept."""

from torch import Tensor

Memories = {str: {str: Tensor}}
FORM = {  # {a: b}: a dictionary from a to b; [a]: a list or tuple
    "rounds": int,
    "prepared": {str: {str: int}},
    "images": {str: int},
    "model": {str: Tensor},
    "server": Memories,
    "clients": {str: Memories},
    "_tested": {str: {str: Tensor}},
    "away": {str: {int: str}},
    "after": {str: int},
    "lost": {str: [int]},
    "shared": {str: Tensor},
    "forms": {str: {str: [str]}},
    "wire": {str: {str: int}},
}


def require_form(state) -> None:
    """ValueError, naming the entry, where one cannot be a run's."""
    if not isinstance(state, dict):
        raise ValueError(f"its run is {type(state).__name__}; expected names and values")
    for name, value in state.items():
        if name in FORM and not fits(value, FORM[name]):
            raise ValueError(f"{name} of its run has not the form that a run gave it")


def fits(value, form) -> bool:
    """Whether a value has a form, as in ``FORM``."""
    if isinstance(form, dict):
        ((key, inner),) = form.items()
        return isinstance(value, dict) and all(fits(k, key) and fits(v, inner) for k, v in value.items())
    if isinstance(form, list):
        return isinstance(value, list | tuple) and all(fits(each, form[0]) for each in value)
    return isinstance(value, form) and not (form is int and isinstance(value, bool))
