"""Confines every command to what its call was judged, and allowed, to do."""

from sylph.engine.sandbox.layers import Layer
from sylph.engine.sandbox.sandbox import Sandbox
from sylph.engine.sandbox.terms import Caps, Grip, Network, Terms

__all__ = ["Caps", "Grip", "Layer", "Network", "Sandbox", "Terms"]
