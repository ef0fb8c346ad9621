"""Recalibration of the probabilities of several classes."""
