"""The options of a method: each has a default, and the values that it may take."""

from collections.abc import Callable, Collection
from dataclasses import field

from fednb.errors import RecipeError, nearest


def option(
    default,
    *,
    at_least: float | None = None,
    above: float | None = None,
    within: str = "",
    one_of: Collection[str] = (),
    allowed: Callable[..., bool] | None = None,
    expected: str = "",
):
    """A field of a method's dataclass with this default; ``Method`` refuses any other value than those allowed. ::

        mu: float = option(0.001, at_least=0)
        tau: float = option(0.5, above=0)
        beta: float = option(0.9, within="[0, 1)")
        variant: str = option("paper", one_of=("paper", "released"))
        channels: int = option(2, allowed=(1, 2).__contains__, expected="1 or 2")

    One of these ways each; NaN is in no range. allowed: whether it may have a value; expected: what it may, in words. A
    method that is a subclass is held to the same.
    """
    if at_least is not None:
        allowed, expected = (lambda value: value >= at_least), f"at least {at_least}"
    elif above is not None:
        allowed, expected = (lambda value: value > above), f"a value above {above}"
    elif within:
        allowed, expected = (lambda value: _lies_in(within, value)), f"a value in {within}"
    return field(default=default, metadata={"one_of": one_of, "allowed": allowed, "expected": expected})


def require_allowed(method) -> None:
    """RecipeError, with the method's name, for an option with a value that its class or one above does not allow."""
    for kind in type(method).__mro__:
        for name, each in vars(kind).get("__dataclass_fields__", {}).items():
            value, limits = getattr(method, name), each.metadata
            if limits.get("one_of") and value not in limits["one_of"]:
                raise RecipeError(f'{method.name} has no {name} "{value}"; {nearest(value, limits["one_of"])}')
            if limits.get("allowed") and not limits["allowed"](value):
                raise RecipeError(f"{method.name} has {name} {value!r}; expected {limits['expected']}.")


def _lies_in(interval: str, value: float) -> bool:
    low, high = map(float, interval[1:-1].split(","))
    ends = interval[0] + interval[-1]
    return low < value < high or ("[" in ends and value == low) or ("]" in ends and value == high)
