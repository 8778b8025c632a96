"""What a node accepts and gives back, and every format that outlives a process.

It imports nothing else of ours. In reading order: ``base``, ``outcome``, ``condition``, ``task``,
``endpoint``, ``relay``, ``spec``, ``evidence``, ``result``, ``report``, ``trial``.
"""
