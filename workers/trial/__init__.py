"""One attempt's try: ``run`` calls the phases in order, ``handoff`` has what each gives the next.

prepare, provision, launch, drive, freeze, collect, verify, seal; ``decide`` gives the outcome.
"""
