"""A figure: what a bench has measured, with its spread and what it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Self

from workers.contract.base import Strict


class Figure(Strict):
    """One measured value; several samples are told by their median, least and greatest.

    The time of a busy machine says little: compare ``ratio``, whose two sides were measured in
    one run.
    """

    name: str
    value: float
    unit: str = ""
    reference: float | None = None
    """The same quantity, measured in the same run by other means; or what it should be."""
    against: str = ""
    """What the reference is, in a few words."""
    ratio: float | None = None
    """Value to reference."""
    low: float | None = None
    high: float | None = None
    n: int = 1
    """Samples."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    """Of the pairs, where value and reference were sampled by turns."""

    @classmethod
    def one(
        cls,
        name: str,
        value: float,
        unit: str = "",
        reference: float | None = None,
        against: str = "",
    ) -> Self:
        """A value without a spread: a count, or a single measurement."""
        return cls(
            name=name,
            value=value,
            unit=unit,
            reference=reference,
            against=against,
            ratio=_ratio(value, reference),
        )

    @classmethod
    def of(
        cls,
        name: str,
        samples: Sequence[float],
        unit: str = "",
        reference: float | None = None,
        against: str = "",
    ) -> Self:
        """Samples of one quantity.

        Raises:
            ValueError: there are none.
        """
        if not samples:
            raise ValueError(f"{name}: a figure needs a sample")
        return cls(
            name=name,
            value=median(samples),
            unit=unit,
            reference=reference,
            against=against,
            ratio=_ratio(median(samples), reference),
            low=min(samples),
            high=max(samples),
            n=len(samples),
        )

    @classmethod
    def by_turns(
        cls,
        name: str,
        samples: Sequence[float],
        references: Sequence[float],
        unit: str = "",
        against: str = "",
    ) -> Self:
        """Samples and references measured in turn, A B A B, so that both met the same machine.

        The ratio is the median of the pairs' ratios.

        Raises:
            ValueError: there are none, or not as many of one as of the other.
        """
        pairs = list(zip(samples, references, strict=True))
        ratios = [value / reference for value, reference in pairs if reference]
        plain = cls.of(name, samples, unit, median(references) if references else None, against)
        if not ratios:
            return plain
        return plain.model_copy(
            update={
                "ratio": median(ratios),
                "ratio_low": min(ratios),
                "ratio_high": max(ratios),
            }
        )


def _ratio(value: float, reference: float | None) -> float | None:
    return value / reference if reference else None
