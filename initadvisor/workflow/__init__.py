"""What the commands do: each module a short script over the layers below."""
