"""The API to read and to try out, in a browser, without the internet."""
