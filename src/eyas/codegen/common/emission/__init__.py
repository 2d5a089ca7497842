"""Code made of a kernel's statements, on any target: values, addresses and loads of register tiles, bodies."""
