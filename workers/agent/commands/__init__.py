"""The ``buzz`` command, as it runs inside the agent's process.

``program`` holds the table of commands and runs one; ``arguments`` reads their flags; ``call`` is
one run of one command; each further module is a family of commands, ``mentions`` and ``diff``
their pure rules.
"""
