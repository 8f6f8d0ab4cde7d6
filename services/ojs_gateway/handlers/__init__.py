"""What each route does: reads the request, asks the store or the projectors, writes the answer.

A class for each subject.
"""
