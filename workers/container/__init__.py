"""Containers of trials: what is needed (``interface``) and Docker, which gives it.

Start reading at ``interface`` and ``docker``; every other file serves one concern of theirs.
This file imports nothing, so that whoever needs the interface does not load Docker's client.
"""
