"""From the configuration to the parts that the program is put together from."""
