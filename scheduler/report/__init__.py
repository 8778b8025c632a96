"""Stage 8, report: TryRecord -> Summary.

``collect`` reads what a sweep left in the store, ``score`` turns it into a ``Summary`` without
any I/O, ``tables`` and ``page`` show that summary. All may run at any moment of a sweep: what
has no result yet is missing, and a missing attempt is never a zero but lowers the coverage.
"""
