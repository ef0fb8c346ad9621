"""Audits of more than two classes: one class against the rest, pairs of classes, the verdict."""
