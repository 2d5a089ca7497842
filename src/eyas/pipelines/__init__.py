"""The phases of compilation in order, the passes of each as a flat list, and the driver that runs them."""
