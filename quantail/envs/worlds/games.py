"""Five small worlds in which the optimal policy depends on the risk measure."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quantail.envs.worlds.tabular import Outcome, State, World
from quantail.registration import world_id

Picture = NDArray[np.uint8]
GROUND, GRASS, CLIFF, GOAL, WALKER = (
    (24, 26, 32), (88, 140, 88), (150, 70, 60), (240, 200, 60), (90, 200, 250)
)  # fmt: skip
CELL = 16  # pixels


class RiskyBandit(World):
    """One choice between a sure reward, one that is better on average, and a lottery."""

    about = "one choice among a sure return, a better one with a rare loss, and a lottery"
    legend = "nothing moves: one decision, then it is over"
    actions: ClassVar[Sequence[str]] = ("sure", "risky", "lottery")

    def all_states(self) -> list[State]:
        return [(0,)]

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        return [
            [Outcome(1.0, 1.0)],
            [Outcome(0.9, 2.0), Outcome(0.1, -5.0)],
            [Outcome(0.95, 0.0), Outcome(0.05, 18.0)],
        ][action]

    def describe(self, state: State) -> str:
        return "the only choice"

    def picture(self) -> Picture:
        return _cells([[GRASS, GOAL if self.state is None else WALKER, CLIFF]])


class WindyCliff(World):
    """A walk to the other side, along a cliff: the shortest way risks that the wind causes a fall.

    The walker is in a row above the edge; row 0 is the nearest. "On" moves one column forward, "up"
    moves one row up in the same column, and "down" moves one column forward and one row down. Every step
    that ends in row 0 risks a fall, except the one that reaches the goal.
    """

    about = "the way along the edge is short and risks a rare fall; the way above it is longer and safe"
    legend = "blue: the walker and its way; yellow: the goal; red: the cliff"
    actions: ClassVar[Sequence[str]] = ("on", "up", "down")
    columns, rows = 6, 3
    wind, fall, step_cost = 0.05, -6.0, -1.0

    def all_states(self) -> list[State]:
        return [(column, row) for column in range(self.columns - 1) for row in range(self.rows)]

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        column, row = state
        if action == 1 and row < self.rows - 1:
            row += 1
        else:
            column += 1
            row = max(row - 1, 0) if action == 2 else row
        arrived = column == self.columns - 1
        # A walker who arrives in a higher row must still walk down.
        reward = self.step_cost * (1 + row) if arrived else self.step_cost
        safe = Outcome(1.0, reward, None if arrived else (column, row))
        if row or arrived:
            return [safe]
        fallen = Outcome(self.wind, self.step_cost + self.fall)
        return [Outcome(1 - self.wind, safe.reward, safe.state), fallen]

    def describe(self, state: State) -> str:
        return "column {}, row {}".format(*state)

    def picture(self) -> Picture:
        rows = [[GRASS] * (self.columns - 1) + [GOAL] for _ in range(self.rows)]
        picture = _cells([*rows, [CLIFF] * self.columns]).repeat(3, axis=0).repeat(3, axis=1)
        size = 3 * CELL
        picture[size - 1 :: size] //= 2  # lines between cells
        picture[:, size - 1 :: size] //= 2
        for column, row in self.path[: None if self.state is None else -1]:
            _disc(picture, column * size, (self.rows - 1 - row) * size, size, 0.15)
        column, row = self._place()
        _disc(picture, column * size, (self.rows - 1 - row) * size, size, 0.4, GROUND)
        _disc(picture, column * size, (self.rows - 1 - row) * size, size, 0.33)
        return picture

    def _place(self) -> State:
        """Return where the walker is, also at the end: on the goal, or in row −1 after a fall."""
        if self.state is not None:
            return self.state
        column, row = self.path[-1]
        fell = self.last_reward <= self.step_cost + self.fall
        return column + 1, -1 if fell else row


class Chain(World):
    """Five steps, each with a choice between a steady wage and a gamble that pays more on average."""

    about = "five choices between a steady wage and a gamble that pays a little more on average"
    legend = "blue: the current step; yellow: the end"
    actions: ClassVar[Sequence[str]] = ("steady", "gamble")
    length = 5

    def all_states(self) -> list[State]:
        return [(step,) for step in range(self.length)]

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        after = (state[0] + 1,) if state[0] + 1 < self.length else None
        if action == 0:
            return [Outcome(1.0, 1.0, after)]
        return [Outcome(0.3, -1.0, after), Outcome(0.5, 1.5, after), Outcome(0.2, 4.0, after)]

    def describe(self, state: State) -> str:
        return f"step {state[0] + 1}"

    def picture(self) -> Picture:
        cells = [GRASS] * self.length + [GOAL]
        if self.state is not None:
            cells[self.state[0]] = WALKER
        return _cells([cells])


class Stopping(World):
    """Optimal stopping of a price that goes up or down each day.

    Selling pays the price minus the strike, or nothing if the price is lower, and ends the episode.
    After the last day the option is sold automatically.
    """

    about = "a price goes up or down each day: sell now or wait"
    legend = "blue: the price (higher is more); red: the strike; each column is a day"
    actions: ClassVar[Sequence[str]] = ("wait", "sell")
    days, start, strike, up, drift = 6, 4.0, 2.0, 1.0, 0.53

    def all_states(self) -> list[State]:
        return [(day, ups) for day in range(self.days) for ups in range(day + 1)]

    def price(self, day: int, ups: int) -> float:
        """Return the price after `day` days, of which `ups` went up."""
        return self.start + self.up * (2 * ups - day)

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        day, ups = state
        pay = max(self.price(day, ups) - self.strike, 0.0)
        if action == 1:
            return [Outcome(1.0, pay)]
        if day + 1 == self.days:
            pays = [max(self.price(day + 1, ups + up) - self.strike, 0.0) for up in (1, 0)]
            return [Outcome(self.drift, pays[0]), Outcome(1 - self.drift, pays[1])]
        return [
            Outcome(self.drift, 0.0, (day + 1, ups + 1)),
            Outcome(1 - self.drift, 0.0, (day + 1, ups)),
        ]

    def describe(self, state: State) -> str:
        return f"day {state[0]}, price {self.price(*state):g}"

    def picture(self) -> Picture:
        height = 2 * self.days + 1
        cells = [[GROUND] * (self.days + 1) for _ in range(height)]
        strike_row = height // 2 + int(self.start - self.strike)
        cells[min(strike_row, height - 1)] = [CLIFF] * (self.days + 1)
        if self.state is not None:
            day, ups = self.state
            cells[height // 2 - (2 * ups - day)][day] = WALKER
        return _cells(cells)


class Allais(World):
    """Allais' two pairs of choices (1953), in millions; a coin decides between the pairs.

    Most people take the sure million in the first pair and the gamble for five in the second. No
    expected utility prefers both, because the pairs differ only by a common part. Distortion measures
    such as `pow:-2` and `wang:-1` do.
    """

    about = "two pairs of lotteries that no expected utility explains and a distortion does"
    legend = "left: the first pair; right: the second; nothing moves"
    actions: ClassVar[Sequence[str]] = ("safer", "gamble")

    def all_states(self) -> list[State]:
        return [(0,), (1,), (2,)]  # the coin, the first pair, the second pair

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        if state == (0,):
            return [Outcome(0.5, 0.0, (1,)), Outcome(0.5, 0.0, (2,))]
        first = [[Outcome(1.0, 1.0)], [Outcome(0.01, 0.0), Outcome(0.89, 1.0), Outcome(0.1, 5.0)]]
        second = [[Outcome(0.89, 0.0), Outcome(0.11, 1.0)], [Outcome(0.9, 0.0), Outcome(0.1, 5.0)]]
        return (first if state == (1,) else second)[action]

    def describe(self, state: State) -> str:
        return ("the coin", "first pair", "second pair")[state[0]]

    def picture(self) -> Picture:
        shown = 1 if self.state is None else self.state[0]
        cells = [GRASS, GROUND, GRASS]
        cells[{0: 1, 1: 0, 2: 2}[shown]] = WALKER if self.state is not None else GOAL
        return _cells([cells])


WORLDS: dict[str, type[World]] = {
    world_id(world.__name__): world for world in (RiskyBandit, WindyCliff, Chain, Stopping, Allais)
}


def _disc(
    picture: Picture,
    left: int,
    top: int,
    size: int,
    radius: float,
    colour: tuple[int, int, int] = WALKER,
) -> None:
    """Draw a disc in the middle of a cell; its radius is in cells."""
    offsets = (np.arange(size) + 0.5) / size - 0.5
    inside = offsets[:, None] ** 2 + offsets**2 < radius**2
    picture[top : top + size, left : left + size][inside] = colour


def _cells(rows: Sequence[Sequence[tuple[int, int, int]]]) -> Picture:
    return np.array(rows, np.uint8).repeat(CELL, axis=0).repeat(CELL, axis=1)
