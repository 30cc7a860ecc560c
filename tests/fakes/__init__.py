"""Doubles that the tests share: models, servers, worlds of data."""
