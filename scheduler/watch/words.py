"""Amounts as people read them at a glance."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def amount(number: int) -> str:
    """``950``, ``12.3k``, ``4.6M``."""
    if number < 10_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def money(usd: float) -> str:
    """``$0.0012``, ``$12.30``."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"
