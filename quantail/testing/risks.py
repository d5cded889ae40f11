"""`check_risk`: every check of a risk measure."""

import copy

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.risk import DecisionContext, RiskMeasure
from quantail.taus import midpoints
from quantail.testing.common import NO_RANDOMNESS, answer, asking, close, kept_generators, require
from quantail.testing.forms import check_tensor, slope_text, wrong_slope

GRID = 20_000  # fractions at which a map of τ is compared with the value


def check_risk(measure: RiskMeasure) -> None:
    """Check that a risk measure keeps its contract; raise a `PartError` with one sentence if not.

    The value must be a function of the distribution alone, however it is written, and must not fall
    when returns rise, unless the measure has `monotone = False`. A measure with a `tau_map` must agree
    with it and be normalised: a certain return c is worth c.

        from quantail.testing import check_risk
        from my_package import MyMeasure
        check_risk(MyMeasure(0.3))
    """
    with kept_generators():
        require(
            isinstance(measure, RiskMeasure),
            f"risk {getattr(measure, '__name__', repr(measure))}",
            "is not an instance of RiskMeasure",
            "check_risk takes a measure that is made already, such as check_risk(MyMeasure(0.3))",
        )
        with asking(f"risk {type(measure).__name__}", "its text form"):
            text = str(measure)
        require(
            bool(text.strip()) and "\n" not in text and " at 0x" not in text,
            f"risk {type(measure).__name__}",
            f"has the text form {text!r}",
            "str(measure) must be one line that is the same in every process, such as cvar:0.25",
        )
        check = RiskCheck(measure)
        with asking(check.part, "a value"):
            check.run()


class RiskCheck:
    """A measure and the checks of it."""

    def __init__(self, measure: RiskMeasure) -> None:
        self.measure, self.part = measure, f"risk {measure}"

    def run(self) -> None:
        """Run all checks."""
        for shape in ((), (3,), (2, 3), (2, 3, 4)):
            for dtype in (torch.float32, torch.float64):
                self.check_form(shape, dtype)
        self.check_representation()
        self.check_context()
        self.check_gradient()
        if self.measure.monotone:
            self.check_monotone()
        if self.measure.tau_map is not None:
            self.check_normalised()
            self.check_tau_map()
        self.check_neutral()
        self.check_copy()

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        """Return the value of a distribution, after checking the answer."""
        given = [z.atoms] if z.probs is None else [z.atoms, z.probs]
        question = f"the value of atoms {tuple(z.atoms.shape)}"
        if z.probs is not None:
            question += f" with probs {tuple(z.probs.shape)}"
        return answer(
            self.part, question, lambda: self.measure.value(z, context), *given, rule=NO_RANDOMNESS
        )

    def check_form(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Check the shape of the value, with and without probabilities, and one by one."""
        for z in (distribution(*shape, dtype=dtype), distribution(*shape, dtype=dtype, probs=False)):
            value = self.value(z)
            check_tensor(self.part, f"the value of atoms {tuple(z.atoms.shape)}", value, shape, dtype)
            if shape:
                atoms = z.atoms.flatten(0, -2)
                probs = [None] * len(atoms) if z.probs is None else list(z.probs.flatten(0, -2))
                pairs = zip(atoms, probs, strict=True)
                alone = [self.value(ReturnDistribution(*pair)) for pair in pairs]
                require(
                    close(value.flatten(), torch.stack(alone), 1e-4),
                    self.part,
                    "gives a distribution another value when others are in the same batch",
                    "each value must depend on its own distribution alone",
                )

    def check_representation(self) -> None:
        """Check that the value depends on the distribution, and not on how it is written."""
        z = distribution(4)
        atoms, probs = z.atoms, z.probabilities()
        ways = {
            "with its atoms in another order": ReturnDistribution(atoms.flip(-1), probs.flip(-1)),
            "with each atom split in two of half the probability": ReturnDistribution(
                torch.cat([atoms, atoms], dim=-1), torch.cat([probs, probs], dim=-1) / 2
            ),
            "with further atoms of probability 0": ReturnDistribution(
                torch.cat([atoms, atoms.flip(0) - 3, atoms + 3], dim=-1),
                torch.cat([probs, torch.zeros_like(probs), torch.zeros_like(probs)], dim=-1),
            ),
            "as comonotone": ReturnDistribution(atoms, probs, comonotone=True),
        }
        expected = self.value(z)
        for way, same in ways.items():
            self.check_same(way, self.value(same), expected)
        plain = distribution(4, probs=False)
        even = ReturnDistribution(plain.atoms, torch.full_like(plain.atoms, 1 / plain.atoms.shape[-1]))
        self.check_same("with probs that are all equal", self.value(even), self.value(plain))
        shared = ReturnDistribution(atoms, probs[:1])
        self.check_same(
            "with probs that broadcast",
            self.value(shared),
            self.value(ReturnDistribution(atoms, shared.probabilities().clone())),
        )

    def check_same(self, way: str, found: Tensor, expected: Tensor) -> None:
        """Check the value of a distribution that is written in another way."""
        require(
            close(found, expected, 1e-5),
            self.part,
            f"gives {largest_difference(found, expected)} when the same distribution is written {way}",
            "the value must depend on the distribution alone",
        )

    def check_context(self) -> None:
        """Check that every field of the context is optional."""
        z = distribution(2, 3)
        with asking(self.part, "the value with an empty DecisionContext"):
            empty = self.measure.value(z, DecisionContext())
        require(
            close(empty, self.value(z), 1e-6),
            self.part,
            "gives another value with an empty DecisionContext than with None",
            "every field of the context is optional",
        )

    def check_gradient(self) -> None:
        """Check gradients in the atoms and the probabilities, at ties and point masses too."""
        for z in (distribution(3), ReturnDistribution(torch.ones(3, 5).double()), distribution(3, 4)):
            atoms = z.atoms.clone().requires_grad_()
            probs = z.probabilities().clone()
            probs[..., 0] = 0  # an atom that cannot be
            probs = (probs / probs.sum(dim=-1, keepdim=True)).requires_grad_()
            value = self.measure.value(ReturnDistribution(atoms, probs)).sum()
            require(
                value.requires_grad,
                self.part,
                "gives a value without a gradient",
                "it must be differentiable in the atoms",
            )
            gradients = torch.autograd.grad(value, (atoms, probs), allow_unused=True)
            require(
                all(one is None or bool(one.isfinite().all()) for one in gradients),
                self.part,
                "gives its atoms or probabilities a gradient that is not finite",
                "all gradients must be finite, also at point masses and probabilities of 0",
            )
        atoms = distribution(3).atoms.requires_grad_()
        z = ReturnDistribution(atoms, distribution(3).probs)
        (gradient,) = torch.autograd.grad(self.measure.value(z).sum(), atoms)
        wrong = wrong_slope(lambda: self.measure.value(z).sum(), atoms, gradient)
        require(
            wrong is None,
            self.part,
            f"gives its atoms the slope {slope_text(wrong, 0)} where finite differences give "
            f"{slope_text(wrong, 1)}",
            "the gradient must be that of the value",
        )

    def check_monotone(self) -> None:
        """Check that the value never falls when returns rise (first-order stochastic dominance)."""
        generator = torch.Generator().manual_seed(2)
        worse = distribution(200)
        raised = torch.rand(worse.atoms.shape, generator=generator, dtype=torch.float64)
        raised *= torch.rand(worse.atoms.shape, generator=generator, dtype=torch.float64) < 0.3
        low, high = self.value(worse), self.value(ReturnDistribution(worse.atoms + raised, worse.probs))
        fell = low - high > 1e-6 * low.abs().clamp(min=1)
        index = int((low - high).argmax())
        require(
            not fell.any(),
            self.part,
            f"falls from {float(low[index]):.4g} to {float(high[index]):.4g} when some returns rise",
            "higher returns must never be worth less, unless the measure has monotone = False",
        )

    def check_normalised(self) -> None:
        """Check that a certain return is worth itself."""
        for certain in (-1.5, 0.0, 2.0):
            value = self.value(ReturnDistribution(torch.full((2, 5), certain, dtype=torch.float64)))
            require(
                close(value, torch.full_like(value, certain), 1e-5),
                self.part,
                f"gives {float(value[0]):.4g} for the certain return {certain:g}",
                "a measure with a tau_map is a mean, so a certain return must be worth itself",
            )

    def check_tau_map(self) -> None:
        """Check that the map of τ is one, and that its mean return is the value."""
        tau_map = self.measure.tau_map
        assert tau_map is not None
        for dtype in (torch.float32, torch.float64):
            taus = torch.linspace(0, 1, 501, dtype=dtype)
            mapped = answer(self.part, "its tau_map", lambda: tau_map(taus), taus, rule=NO_RANDOMNESS)  # noqa: B023
            check_tensor(self.part, "its tau_map", mapped, (501,), dtype)
            require(
                ((mapped >= 0) & (mapped <= 1)).all(),
                self.part,
                f"maps τ to {float(mapped.min()):.4g} … {float(mapped.max()):.4g}",
                "tau_map must map [0, 1] into [0, 1]",
            )
            require(
                (mapped.diff() >= -1e-6).all(),
                self.part,
                "has a tau_map that falls",
                "it must not decrease in τ",
            )
        z = distribution(4)
        sampled = z.quantile(tau_map(midpoints(GRID, torch.float64)).expand(4, -1)).mean(dim=-1)
        value = self.value(z)
        require(
            close(value, sampled, 2e-3),
            self.part,
            f"gives {largest_difference(value, sampled)} as the mean of quantiles at tau_map(τ)",
            "value and tau_map must agree, because implicit heads use the second for the first",
        )
        weights = self.measure.tau_weights(torch.linspace(0, 1, 11, dtype=torch.float64))
        if weights is not None:
            check_tensor(self.part, "tau_weights of 10 intervals", weights, (10,), torch.float64)
            require(
                (weights >= -1e-9).all() and (weights.sum() - 1).abs() < 1e-6,
                self.part,
                f"gives tau_weights of at least {float(weights.min()):.4g} and a sum of "
                f"{float(weights.sum()):.4g}",
                "they must be at least 0 and sum to 1",
            )

    def check_neutral(self) -> None:
        """Check that a measure which is or can become the mean is the mean there."""
        z = distribution(4)
        neutral: dict[str, RiskMeasure] = {}
        if self.measure.is_neutral:
            neutral["says is_neutral"] = self.measure
        if self.measure.neutral_eta is not None:
            with asking(self.part, "annealed(0)"):
                neutral[f"has neutral_eta {self.measure.neutral_eta:g}"] = self.measure.annealed(0.0)
        for says, measure in neutral.items():
            value = measure.value(z)
            require(
                close(value, z.mean(), 1e-5),
                self.part,
                f"{says} and gives {largest_difference(value, z.mean())} as the mean",
                "there it must be the mean return",
            )
        require(
            close(self.measure.annealed(1.0).value(z), self.value(z), 1e-6),
            self.part,
            "is another measure after annealed(1)",
            "annealing must end in the measure itself",
        )

    def check_copy(self) -> None:
        """Check that a copy is the same measure."""
        z = distribution(4)
        with asking(self.part, "a deep copy"):
            copied = copy.deepcopy(self.measure)
        require(
            close(copied.value(z), self.value(z), 0.0) and str(copied) == str(self.measure),
            self.part,
            "has a deep copy with other values or another text form",
            "a copy must be the same measure",
        )


def distribution(
    *shape: int, dtype: torch.dtype = torch.float64, probs: bool = True
) -> ReturnDistribution:
    """Return random distributions of seven atoms between −2 and 2."""
    generator = torch.Generator().manual_seed(1)
    atoms = 4 * torch.rand(*shape, 7, generator=generator, dtype=torch.float64) - 2
    weights = torch.rand(*shape, 7, generator=generator, dtype=torch.float64) + 0.05
    given = (weights / weights.sum(dim=-1, keepdim=True)).to(dtype) if probs else None
    return ReturnDistribution(atoms.to(dtype), given)


def largest_difference(found: Tensor, expected: Tensor) -> str:
    """Return the numbers where two answers differ most, as text."""
    index = int((found - expected).abs().argmax())
    return f"{float(found.flatten()[index]):.4g} instead of {float(expected.flatten()[index]):.4g}"
