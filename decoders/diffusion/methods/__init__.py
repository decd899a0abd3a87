"""The strategies that fill a canvas, a file each."""
