"""The exception for errors that the user can fix, and helpers for its messages."""

import json
from collections.abc import Iterable
from difflib import get_close_matches


class QuantailError(Exception):
    """A user error or a damaged file. Commands print its message without a traceback."""


def damage(error: Exception) -> str:
    """Describe what is wrong with a file, given the exception that reading it raised."""
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]}"
    if isinstance(error, TypeError | AttributeError):
        return "a value in it is of the wrong kind"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not valid JSON from line {error.lineno} on"
    if str(error).startswith(("could not convert", "invalid literal")):
        return f"{str(error).rpartition(': ')[2]} is not a number"
    return str(error).rstrip(".")


def reason_of(error: BaseException) -> str:
    """Return the message of an error in one line, with its type where the message alone is unclear."""
    text, kind = " ".join(str(error).split()).rstrip("."), type(error).__name__
    if text and isinstance(error, QuantailError | ImportError):
        return text
    return f"{kind}: {text}" if text else kind


DIVERGED = "learning diverged; try a lower learning_rate, clip_rewards or gradient_clip."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known name, or "" if none is similar."""
    known = list(known)
    lowered = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), lowered, n=1, cutoff=0.65)
    return f" Did you mean {lowered[near[0]]!r}?" if near else ""
