"""A data set of tasks, kept right: what its folders promise, and whether they keep it.

Beside the walk of an attempt: nothing here is needed to run a sweep. ``lock`` pins digests,
``proof`` reads what stands beside a task (facts that must agree, transcripts that must pass or
fail), ``check`` runs everything, and ``skeleton`` writes the folder of a new task.
"""
