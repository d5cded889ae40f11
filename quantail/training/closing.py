"""Close several things, whatever one of them does."""

from collections.abc import Callable, Iterable


def call_all(functions: Iterable[Callable[[], None]]) -> None:
    """Call all functions, also after one has failed; then raise the first error."""
    errors = []
    for function in functions:
        try:
            function()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
