"""Files: case files, journals, run files and manifests."""
