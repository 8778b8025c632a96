"""The reference agent: the program that runs inside the task container.

Only the standard library and ``workers.nostr`` are used, and any CPython from 3.9 on will do.

* ``supervisor``: PID 1; loads the libraries once, forks one process per agent, reaps
* ``agent``: one agent's process: subscribes, waits for mentions, runs turns
* ``turn``, ``session``, ``prompt``, ``llm``, ``shell``: what a turn is made of
* ``relay_link``, ``websocket``, ``bridge``: the relay's two doors
* ``commands``, ``command_server``, ``buzz_client``: the ``buzz`` command
"""
