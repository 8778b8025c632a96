"""A node of the cluster, and everything that a trial is made of.

In the order in which one attempt passes through:

* ``contract``: what a node accepts and gives back; every persisted format
* ``actor`` and ``node``: leases in, finished tries out
* ``trial``: prepare, provision, launch, drive, freeze, collect, verify, seal
* ``relay``, ``gateway``, ``model``, ``container``, ``storage``: the tools of a trial
* ``agent`` and ``nostr``: the program inside the task container, and Nostr without I/O

This file imports nothing: it is carried into every task container.
"""
