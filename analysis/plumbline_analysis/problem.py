"""The one kind of error a user sees: where, what is wrong, what is allowed, what to do next."""

from __future__ import annotations


class Problem(Exception):
    """Bad input. Printed once, in ``main``, as one line; the exit code is 2.

    The text follows the whole project's form:
    ``WHERE: FIELD: VALUE: what is wrong (allowed: BOUND); next step``.
    """

    def __init__(
        self, where: str, what: str, *, field: str = "", value: str = "", next_step: str = ""
    ):
        parts = [where, field, value, what]
        text = ": ".join(part for part in parts if part)
        super().__init__(f"{text}; {next_step}" if next_step else text)
