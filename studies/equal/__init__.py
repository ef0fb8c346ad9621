"""The same number by this package and by others, one small function a row."""
