"""The driver: from sweep files to a report, one file per stop.

The words are in ``workers.contract``. In the order in which the data moves:

* Stage 1 ``manifest``: YAML files to checked, frozen values
* Stage 2 ``plan``: a sweep to its lock, cells and attempts
* Stage 3 ``queue``: attempts to leases
* Stage 4 ``dispatch``: leases to nodes (``cluster`` starts and stops them)
* Stage 5 and 6 are ``workers.node`` and ``workers.trial``
* Stage 7 ``commit``: what nodes report, and what the store holds, to settled attempts
* Stage 8 ``report``: settled attempts to tables and pages

Beside the walk, ``claims`` and ``succession`` let one driver of a sweep follow another, ``series``
runs sweeps on a timetable, and ``dataset`` keeps a data set of tasks right.
"""
