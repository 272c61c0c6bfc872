"""The report: records in, one self-contained HTML page out. Reads no file of results and no clock."""
