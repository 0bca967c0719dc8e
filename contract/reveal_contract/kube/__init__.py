"""Names, Events and the AnomalyReport: the parts of the Kubernetes API that components share."""
