"""A running sweep, or one of its trials, on a terminal: read from the store alone.

``sweep_reader`` and ``trial_reader`` say how it stands, ``sweep_screen`` and ``trial_screen`` draw
that to the terminal's size, ``terminal`` keeps drawing until its user leaves.
"""
