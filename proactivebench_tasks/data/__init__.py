"""Where rows and images come from: a folder, zip archives, the hub."""
