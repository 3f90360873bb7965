"""Kill at every durable boundary, and look at what is left."""
