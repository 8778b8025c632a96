"""Benches: what Apiary promises, measured on real parts of this machine."""
