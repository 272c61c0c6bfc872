"""Readings taken beside the engine. Sources give raw readings only; folding them is `results.summary`'s work."""
