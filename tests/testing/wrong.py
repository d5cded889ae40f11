"""How the tests of wrong parts list them, each with words of the sentence that it must get."""

import pytest


def collector():
    """Return a decorator that takes the words, and the list of all that it has decorated."""
    parts = []

    def wrong(words):
        def add(part):
            parts.append(pytest.param(part, words, id=part.__name__))
            return part

        return add

    return wrong, parts
