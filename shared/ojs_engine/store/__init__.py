"""The domain on JetStream: records with compare-and-swap, and what must happen beside each write. A folder for each subject.

`store.Store` wires it together; services and `ojs_index` come in through it.
"""
