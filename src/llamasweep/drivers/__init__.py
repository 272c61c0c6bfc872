"""Programs of our own that measure a server and speak as an engine does: rows on stdout, progress and failure on stderr.

`python -m llamasweep.drivers JOB` is started by the runner like llama-bench; the runner imports nothing from here.
"""
