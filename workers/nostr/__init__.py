"""Nostr without I/O: keys, events, attestations, memories and filters.

Runs on CPython 3.9 and later with the standard library and ``nostr_sdk`` alone, because this
package is mounted into task containers. Only ``sdk`` imports ``nostr_sdk``, whose loading costs
0.3 to 0.8 s; ``errors``, ``strict_json``, ``filters``, ``tags`` and ``curve`` do not load it.

This file imports nothing, so that a caller pays only for the module that it names.
"""
