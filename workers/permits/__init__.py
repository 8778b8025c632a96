"""The node's side of rate control: who may ask a provider next, and how the last ones fared."""
