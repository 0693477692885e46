"""What tests and demonstrations need: a model provider on loopback with true wire formats."""

from lockstep.testing.answers import Answer, Request, Script, ToolCall
from lockstep.testing.loopback import Provider

__all__ = ["Answer", "Provider", "Request", "Script", "ToolCall"]
