"""Stage 8, report: TryRecord -> Summary.

``collect`` reads what a sweep left in the store, ``score`` turns it into a ``Summary`` without
any I/O, ``tables``, ``csv_rows`` and ``page`` show that summary. ``sides`` puts two sweeps beside
each other for ``comparison`` and ``gate``. The statistics are in ``intervals``, ``permutation``
and ``power``; ``docs/statistics.md`` says which figure answers which question. All may run at any
moment of a sweep: what has no result yet is missing, and a missing attempt is never a zero but
lowers the coverage.
"""
