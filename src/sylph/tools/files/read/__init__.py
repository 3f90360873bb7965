"""What is read from files of many kinds."""
