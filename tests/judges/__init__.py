"""Real kernels that judge images, and the recording of what they say.

``python -m tests.judges record`` shows every image to a kernel that was not shown to it yet.
"""
