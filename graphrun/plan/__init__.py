"""How a graph will run: waves, and the delegated graph as data and text. Pure."""
