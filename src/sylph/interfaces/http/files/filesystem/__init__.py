"""Files of a workspace, reached without following links out of it."""
