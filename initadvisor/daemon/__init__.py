"""The daemon: works off what hooks have noted, when the machine has nothing better to do."""
