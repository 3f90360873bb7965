"""Who the agent is: the user's own files in the prompt."""
