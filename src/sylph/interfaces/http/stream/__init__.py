"""Events as they happen, over server-sent events and WebSockets."""
