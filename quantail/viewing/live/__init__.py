"""The live page: an agent plays in the browser, and its attitude to risk can be turned as it plays."""

from quantail.viewing.live.serve import watch

__all__ = ["watch"]
