"""Confines every command to what its call was judged, and allowed, to do."""

from sylph.engine.sandbox.layer_probe import SandboxLayer
from sylph.engine.sandbox.policy import CommandRights, Network, SandboxLimits, SandboxPolicy
from sylph.engine.sandbox.sandbox import CommandSandbox

__all__ = ["CommandRights", "CommandSandbox", "Network", "SandboxLayer", "SandboxLimits", "SandboxPolicy"]
