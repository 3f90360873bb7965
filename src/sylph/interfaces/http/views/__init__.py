"""Sessions and turns as the API shows them, in answers and in streams."""
