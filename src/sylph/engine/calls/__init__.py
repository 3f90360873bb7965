"""Every tool call: judged, decided, run, truncated, recovered."""
