"""A stand-in for Buzz's three programs, written from ``spec/buzz-wire.md`` §4–6 alone.

It shares no code with the project: keys, signatures, WebSocket and HTTP are its own, from the
standard library. It refuses to start with any ``BUZZ_*`` variable missing, unknown or other than
the specification has it.
"""
